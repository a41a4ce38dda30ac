import { expect, test } from "vitest";

import { SILENT_LOG } from "../testing/silent-log.ts";
import { redisConnection } from "./redis.ts";

test("[RAD3] the client uses the address, user and database of the setting", () => {
  const { redis, stop } = redisConnection("redis://ada:p%40ss@127.0.0.1:9/2", SILENT_LOG);
  stop();
  expect(redis.options).toMatchObject({ host: "127.0.0.1", port: 9, username: "ada", password: "p@ss", db: 2 });
});

test("[RAD4] all nodes of a Redis Cluster receive the same user", () => {
  const { redis, stop } = redisConnection("rediss://ada:p%40ss@127.0.0.1:9,rediss://ada:p%40ss@127.0.0.1:10", SILENT_LOG);
  stop();
  expect(redis.options).toMatchObject({ redisOptions: { username: "ada", password: "p@ss", tls: {} } });
});
