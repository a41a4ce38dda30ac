/** Reads the boards of rooms in Redis for readers. One answer is of one instant. */

import type { Cluster, Redis } from "ioredis";

import { defineScripts } from "../../shared/io/redis.ts";
import type { Keys } from "../boards/keys.ts";
import type { BoardReads } from "../ports.ts";
import { atOnce, boardState, fieldsOf, orderedOf, pairsOf, rankEntryOf, standingsOf } from "./board-hashes.ts";

type Scripts = { readOrdered(keys: number, ...args: readonly (string | number)[]): Promise<readonly (string | number)[]> };

const SCAN_COUNT = 1_000;

export function redisBoardReads(redis: Redis | Cluster, keys: Keys): BoardReads {
  const scripts = defineScripts<Scripts>(redis, import.meta.url, { readOrdered: "ordered.lua" });
  return {
    read: async (room, role, window) => {
      const { hot, full, counts } = keys.board(room, role, window);
      const [applied, entries, members, bands] = await atOnce(redis, [
        ["hgetall", keys.applied(room)],
        ["zrange", hot, 0, -1, "REV", "WITHSCORES"],
        ["hlen", full],
        ["hgetall", counts],
      ]);
      return boardState(fieldsOf(applied), entries as string[], members as number, fieldsOf(bands));
    },

    members: async (room, role, window, members) => {
      if (members.length === 0) return [];
      const values = await redis.hmget(keys.board(room, role, window).full, ...members);
      return members.flatMap((member, index) => {
        const value = values[index];
        return value == null ? [] : [rankEntryOf(member, value)];
      });
    },

    places: async (room, role, window, places) => {
      const { full, counts, inBand } = keys.board(room, role, window);
      const asked = places.kind === "around" ? [places.member, places.around] : ["", places.offset, places.limit];
      const [first, ahead, ...entries] = await scripts.readOrdered(3, full, counts, inBand, ...asked);
      return first === undefined ? undefined : { first: Number(first), ahead: Number(ahead), standings: orderedOf(entries as string[]) };
    },

    all: async function* (room, role, window) {
      let cursor = "0";
      do {
        const [next, flat] = await redis.hscan(keys.board(room, role, window).full, cursor, "COUNT", SCAN_COUNT);
        yield standingsOf(pairsOf(flat));
        cursor = next;
      } while (cursor !== "0");
    },
  };
}
