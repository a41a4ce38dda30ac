/** Reads all boards, and writes those of rooms, in Redis. Each write is one script, and each answer to a reader shows one instant. */

import type { Cluster, Redis } from "ioredis";

import type { RoomKey, Seq } from "../../shared/ids.ts";
import { defineScripts } from "../../shared/io/redis.ts";
import { byRank, type ScoreBatch } from "../boards/board.ts";
import { CAPS, type Keys, type MemberRole, ROLES } from "../boards/keys.ts";
import type { BoardReads, BoardStore, BoardWrite } from "../ports.ts";
import {
  allKeysOf,
  appliedFields,
  readInOneStep,
  runTransaction,
  boardState,
  DELETED,
  fieldsOf,
  loaded,
  orderedOf,
  pairsOf,
  rankEntryOf,
  scriptKeysOf,
  stampOf,
  rankEntriesOf,
  textsOf,
} from "./board-hashes.ts";

type Arguments = readonly (string | number)[];
type ReadScripts = { readOrdered(keys: number, ...args: Arguments): Promise<readonly (string | number)[]> };

const SCAN_COUNT = 1_000;

export function redisBoardReads(redis: Redis | Cluster, keys: Keys): BoardReads {
  const scripts = defineScripts<ReadScripts>(redis, import.meta.url, { readOrdered: ["board.lua", "ordered.lua"] });
  return {
    read: async (owner, role, window) => {
      const { hot, full, counts } = keys.board(owner, role, window);
      const [applied, entries, members, bands] = await readInOneStep(redis, [
        ["hgetall", keys.applied(owner)],
        ["zrange", hot, 0, -1, "REV", "WITHSCORES"],
        ["hlen", full],
        ["hgetall", counts],
      ]);
      return boardState(fieldsOf(applied), entries as string[], members as number, fieldsOf(bands));
    },

    members: async (owner, role, window, members) => {
      if (members.length === 0) return [];
      const values = await redis.hmget(keys.board(owner, role, window).full, ...members);
      return members.flatMap((member, index) => {
        const value = values[index];
        return value == null ? [] : [rankEntryOf(member, value)];
      });
    },

    places: async (owner, role, window, places) => {
      const { full, counts, inBand } = keys.board(owner, role, window);
      const asked = places.kind === "around" ? [places.member, places.around] : ["", places.offset, places.limit];
      const [first, ahead, ...entries] = await scripts.readOrdered(3, full, counts, inBand, ...asked);
      return first === undefined ? undefined : { first: Number(first), ahead: Number(ahead), standings: orderedOf(entries as string[]) };
    },

    all: async function* (owner, role, window) {
      let cursor = "0";
      do {
        const [next, flat] = await redis.hscan(keys.board(owner, role, window).full, cursor, "COUNT", SCAN_COUNT);
        yield rankEntriesOf(pairsOf(flat));
        cursor = next;
      } while (cursor !== "0");
    },
  };
}

type WriteScripts = {
  applyBatch(keys: number, ...args: Arguments): Promise<readonly string[]>;
  restoreBoards(keys: number, ...args: Arguments): Promise<readonly string[]>;
};

/**
 * `hotMembers`: number of a board's first members that are kept in order. `tail`: whether the others are kept in order
 * too. All writers must use the same values.
 */
type RedisBoardOptions = {
  readonly hotMembers: number;
  readonly tail: "ordered" | "counted";
  readonly roles: readonly MemberRole[];
};

export function redisBoardWrites(redis: Redis | Cluster, keys: Keys, options: RedisBoardOptions): BoardStore {
  const scripts = defineScripts<WriteScripts>(redis, import.meta.url, {
    applyBatch: ["board.lua", "apply.lua"],
    restoreBoards: ["board.lua", "restore.lua"],
  });
  const isOrdered = options.tail === "ordered" ? 1 : 0;

  /** Keys of each room besides its boards. */
  const roomKeys = (room: RoomKey): string[] => [keys.applied(room), ...CAPS.map((cap) => keys.use(room, cap))];

  /**
   * The keys that a script which writes boards declares, preceded by their number. The script finds the keys of the
   * boards in its arguments.
   */
  const declared = (room: RoomKey, ...others: string[]): [number, ...string[]] => {
    const names = [...roomKeys(room), keys.whole(room), ...others];
    return [names.length, ...names];
  };

  /**
   * One JSON argument for many values, because the Redis client handles arguments one by one. Values that are stored
   * unchanged are text.
   */
  const packed = (room: RoomKey, { after, applied, uses, windows, awards }: ScoreBatch) => ({
    after: [after.seq, after.activity, after.time],
    applied: textsOf(appliedFields(applied, uses)),
    uses: CAPS.map((cap) => ({ begun: uses[cap].hasBegun, points: textsOf(uses[cap].points) })),
    groups: options.roles.flatMap((role) => {
      const ofRole = awards.get(role) ?? [];
      if (ofRole.length === 0) return [];
      return {
        members: ofRole.map(({ member }) => member),
        points: ofRole.map(({ points }) => points),
        stamps: ofRole.map(({ reachedAt }) => stampOf(reachedAt)),
        boards: windows.map((window) => scriptKeysOf(keys.board(room, role, window))),
      };
    }),
  });

  const write = ([seq, activity]: readonly string[]): BoardWrite =>
    seq === undefined ? { kind: "written" } : { kind: "stale", counted: { seq: Number(seq) as Seq, activity: Number(activity) } };

  return {
    load: async (room) => {
      const [applied, ...uses] = await readInOneStep(
        redis,
        roomKeys(room).map((key) => ["hgetall", key] as const),
      );
      return loaded(fieldsOf(applied), uses.map(fieldsOf));
    },

    apply: async (room, batch) => {
      const answer = await scripts.applyBatch(...declared(room), options.hotMembers, isOrdered, JSON.stringify(packed(room, batch)));
      return write(answer);
    },

    dump: async (room, windows) => {
      const wanted = options.roles.flatMap((role) => windows.map((window) => ({ role, window })));
      const ofRoom = roomKeys(room);
      const wholes = [...ofRoom, keys.names(room), ...wanted.map(({ role, window }) => keys.board(room, role, window).full)];
      const [applied, ...rest] = (
        await readInOneStep(
          redis,
          wholes.map((key) => ["hgetall", key] as const),
        )
      ).map(fieldsOf);
      const found = loaded(applied!, rest.slice(0, CAPS.length));
      if (found === undefined || found === "deleted") return undefined;
      const [names, ...boards] = rest.slice(CAPS.length);
      const whole = wanted.map((board, index) => ({ ...board, standings: rankEntriesOf(boards[index]!).sort(byRank) }));
      return { ...found, names: names!, boards: whole.filter(({ standings }) => standings.length > 0) };
    },

    restore: async (room, { applied, uses, names, boards }) => {
      const packed = {
        through: [applied.seq, applied.activity, applied.time],
        applied: textsOf(appliedFields(applied, uses)),
        uses: CAPS.map((cap) => textsOf(uses[cap].points)),
        names: [...names].flat(),
        boards: boards.map(({ role, window, standings }) => ({
          keys: scriptKeysOf(keys.board(room, role, window)),
          members: standings.map(({ member }) => member),
          stamps: standings.map(({ reachedAt }) => stampOf(reachedAt)),
          scores: standings.map(({ score }) => String(score)),
        })),
      };
      const answer = await scripts.restoreBoards(
        ...declared(room, keys.names(room)),
        options.hotMembers,
        isOrdered,
        JSON.stringify(packed),
      );
      return write(answer);
    },

    remove: async (room, windows) => {
      await runTransaction(redis, [
        ["unlink", ...roomKeys(room), keys.names(room)],
        ["hset", keys.applied(room), DELETED, 1, "seq", Number.MAX_SAFE_INTEGER, "activity", Number.MAX_SAFE_INTEGER],
      ]);
      for (const role of ROLES) {
        for (const window of windows) {
          await redis.unlink(...(await allKeysOf(redis, keys.board(room, role, window))));
        }
      }
    },
  };
}

/** The boards of rooms in Redis: one script writes, and each read is of one instant. */
export type RedisBoard = BoardStore & BoardReads;

export function redisBoard(redis: Redis | Cluster, keys: Keys, options: RedisBoardOptions): RedisBoard {
  return { ...redisBoardWrites(redis, keys, options), ...redisBoardReads(redis, keys) };
}
