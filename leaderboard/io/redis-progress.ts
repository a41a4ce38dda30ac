/** In Redis, beside the boards: what the one who counts a partition says of itself, and the windows that are still to be archived. */

import { z } from "zod";

import { parseRoomKey, type UnixMillis } from "../../shared/ids.ts";
import { type Keys, ROLES } from "../boards/keys.ts";
import type { Closing, Closings, Progress } from "../ports.ts";
import { parseWindow } from "../boards/windows.ts";
import type { RedisLine } from "../../shared/io/redis.ts";

const StoredWord = z.object({ service: z.string(), through: z.number().transform((number) => number as UnixMillis), told: z.number().default(0).transform((number) => number as UnixMillis), isRebuilding: z.boolean() });

export function redisProgress({ redis, breaks }: RedisLine, keys: Keys): Progress {
  /** How often the line had broken when this partition's last word was said. */
  const breaksAt = new Map<number, number>();
  return {
    begin: async (partition, word) => {
      breaksAt.set(partition, breaks());
      await redis.set(keys.progress(partition), JSON.stringify(word));
    },
    beat: async (partition, word) => {
      const now = breaks();
      const before = await redis.set(keys.progress(partition), JSON.stringify(word), "XX", "GET");
      if (before === null) return "lost";
      const isKept = breaksAt.get(partition) === now && (JSON.parse(before) as { service?: unknown }).service === word.service;
      breaksAt.set(partition, now);
      return isKept ? "kept" : "doubtful";
    },
    read: async (partition) => {
      const word = await redis.get(keys.progress(partition));
      return word === null ? undefined : StoredWord.safeParse(JSON.parse(word)).data;
    },
  };
}

export function redisClosings({ redis }: RedisLine, keys: Keys): Closings {
  return {
    open: async (partition, room, windows) => {
      const ending = windows.filter(({ end }) => Number.isFinite(end));
      if (ending.length > 0) await redis.zadd(keys.closing(partition), ...ending.flatMap(({ id, end }) => [end, `${room} ${id}`]));
    },
    due: async (partition, endedBefore, countMax) => {
      const entries = await redis.zrangebyscore(keys.closing(partition), "-inf", endedBefore, "LIMIT", 0, countMax);
      return entries.flatMap(closingOf);
    },
    finish: async (partition, { room, window }, keepUntil) => {
      for (const role of ROLES) {
        const { hot, full, counts, inBand } = keys.board(room, role, window);
        const bands = (await redis.hkeys(counts)).map((band) => `${inBand}${band}`); // Those of `points` and `ordered` are not there.
        for (const key of [hot, full, counts, ...bands]) await redis.pexpireat(key, keepUntil);
      }
      await redis.zrem(keys.closing(partition), `${room} ${window.id}`);
    },
    remove: async (partition, room, windows) => {
      await redis.zrem(keys.closing(partition), ...windows.map(({ id }) => `${room} ${id}`));
    },
  };
}

function closingOf(entry: string): Closing[] {
  const [roomText = "", id = ""] = entry.split(" ");
  const [room, window] = [parseRoomKey(roomText), parseWindow(id)];
  return room === undefined || window === undefined ? [] : [{ room, window }];
}
