/** The boards of rooms in Redis: what is written goes through one script, what is read is of one instant. */

import type { Cluster, Redis } from "ioredis";

import type { Keys } from "../boards/keys.ts";
import type { BoardReads, Boards } from "../ports.ts";
import { redisBoardReads } from "./redis-board-reads.ts";
import { type RedisBoardOptions, redisBoardWrites } from "./redis-board-writes.ts";

export type RedisBoard = Boards & BoardReads;

export function redisBoard(redis: Redis | Cluster, keys: Keys, options: RedisBoardOptions): RedisBoard {
  return { ...redisBoardWrites(redis, keys, options), ...redisBoardReads(redis, keys) };
}
