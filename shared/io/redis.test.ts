import { expect, test } from "vitest";

import { SILENT } from "../testing/silent-log.ts";
import { redisLine } from "./redis.ts";

test("[RAD3] Redis is asked at the address, as the user and for the database that the setting names", () => {
  const { redis, stop } = redisLine("redis://ada:p%40ss@127.0.0.1:9/2", SILENT);
  stop();
  expect(redis.options).toMatchObject({ host: "127.0.0.1", port: 9, username: "ada", password: "p@ss", db: 2 });
});

test("[RAD4] all nodes of a Redis Cluster are told the same user", () => {
  const { redis, stop } = redisLine("rediss://ada:p%40ss@127.0.0.1:9,rediss://ada:p%40ss@127.0.0.1:10", SILENT);
  stop();
  expect(redis.options).toMatchObject({ redisOptions: { username: "ada", password: "p@ss", tls: {} } });
});
