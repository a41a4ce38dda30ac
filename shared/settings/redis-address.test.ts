import { expect, test } from "vitest";

import { leaderboardSettings } from "../../leaderboard/config.ts";
import { readSettings, SettingError } from "./settings.ts";
import { redisAddress } from "./redis-address.ts";

test("[RAD1] user and password are removed from the addresses of Redis, and decoded", () => {
  expect(redisAddress("redis://redis")).toEqual({ nodes: [{ host: "redis", port: 6379 }], options: {} });
  expect(redisAddress("rediss://ada:p%40ss%2C1@[::1]:6380/2")).toEqual({
    nodes: [{ host: "::1", port: 6380 }],
    options: { username: "ada", password: "p@ss,1", db: 2, tls: {} },
  });
  expect(redisAddress("redis://:word@redis-1:7000, redis://:word@redis-2:7001")).toEqual({
    nodes: [
      { host: "redis-1", port: 7000 },
      { host: "redis-2", port: 7001 },
    ],
    options: { password: "word" },
  });
  expect(redisAddress("redis-1:7000")).toEqual({ nodes: [{ host: "redis-1", port: 7000 }], options: {} });
});

test.each([
  "http://ada:HUSH@redis",
  "/run/HUSH.sock",
  "redis://ada:HUSH%zz@redis",
  "redis://ada:HUSH%ff@redis",
  "redis://ada:HUSH@redis:port",
  "redis://ada:HUSH@",
  "redis://ada:HUSH@redis/boards",
  "redis://redis?password=HUSH",
  "redis://ada:HUSH@redis-1,redis://redis-2",
  "redis://ada:HUSH@redis-1/1,redis://ada:HUSH@redis-2/1",
])("[RAD2] %s is refused by its setting's name, and not shown", (redisUrl) => {
  const read = () => readSettings(leaderboardSettings, { flags: {}, env: { COROOM_REDIS_URL: redisUrl } });
  expect(read).toThrow(SettingError);
  expect(read).toThrow(/COROOM_REDIS_URL must/);
  expect(read).not.toThrow(/HUSH/);
});
