/** The boards of rooms in Redis: what is written goes through one script, what is read is of one instant. */

import type { Cluster, Redis } from "ioredis";

import { assert } from "../../shared/assert.ts";
import { defineScripts } from "../../shared/io/redis.ts";
import type { Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { type Applied, type Batch, byRank, type BoardState, type Standing, type Use, type Uses } from "../boards/board.ts";
import { type Cap, CAPS, type Keys, type Role, ROLES } from "../boards/keys.ts";
import type { BoardReads, Boards, Write } from "../ports.ts";
import { reachedAtOf, STAMP_LENGTH, stampOf } from "../boards/stamp.ts";
import type { Window } from "../boards/windows.ts";

const SCAN_COUNT = 1_000;
/** In the applied hash of a room that is deleted, beside marks that nothing is ahead of: whoever counts on is turned away. */
const DELETED = "deleted";

type Arguments = readonly (string | number)[];
type Scripts = {
  applyBatch(keys: number, ...args: Arguments): Promise<readonly string[]>;
  readOrdered(keys: number, ...args: Arguments): Promise<readonly (string | number)[]>;
  restoreBoards(keys: number, ...args: Arguments): Promise<readonly string[]>;
};

export type RedisBoard = Boards & BoardReads;

/**
 * `hotMembers`: how many of a board's first members stand in order; `tail`: whether those behind them do too. The same
 * for all who write.
 */
export type RedisBoardOptions = { readonly hotMembers: number; readonly tail: "ordered" | "counted"; readonly roles: readonly Role[] };

export function redisBoard(redis: Redis | Cluster, keys: Keys, options: RedisBoardOptions): RedisBoard {
  const scripts = defineScripts<Scripts>(redis, import.meta.url, {
    applyBatch: "apply.lua",
    readOrdered: "ordered.lua",
    restoreBoards: "restore.lua",
  });

  const boardKeys = (room: RoomKey, role: Role, window: Window): string[] => {
    const { hot, full, counts, inBand } = keys.board(room, role, window);
    return [hot, full, counts, inBand];
  };
  const isOrdered = options.tail === "ordered" ? 1 : 0;

  /** All in one step of Redis. */
  const atOnce = async (commands: readonly (readonly [string, ...(string | number)[]])[]): Promise<unknown[]> => {
    const answers = await redis.multi(commands.map(([name, ...args]) => [name, ...args])).exec();
    if (answers === null) throw new Error("Redis did not run a transaction: was its connection lost?");
    return answers.map(([error, answer]) => {
      if (error !== null) throw error;
      return answer;
    });
  };

  /** What each room has beside its boards. */
  const roomKeys = (room: RoomKey): string[] => [keys.applied(room), ...CAPS.map((cap) => keys.use(room, cap))];

  /** The keys that a script which writes boards declares, after their number. The boards' own it finds by what it is told. */
  const declared = (room: RoomKey, ...others: string[]): [number, ...string[]] => {
    const names = [...roomKeys(room), keys.whole(room), ...others];
    return [names.length, ...names];
  };

  /** One argument of many parts: Redis' client takes them one by one. What is stored as it is goes as text. */
  const packed = (room: RoomKey, { after, applied, uses, windows, awards }: Batch) => ({
    after: [after.seq, after.activity],
    applied: textsOf(appliedFields(applied, uses)),
    uses: CAPS.map((cap) => ({ begun: uses[cap].hasBegun, points: textsOf(uses[cap].points) })),
    groups: options.roles.flatMap((role) => {
      const ofRole = awards.get(role) ?? [];
      if (ofRole.length === 0) return [];
      return {
        members: ofRole.map(({ member }) => member),
        points: ofRole.map(({ points }) => points),
        stamps: ofRole.map(({ reachedAt }) => stampOf(reachedAt)),
        boards: windows.map((window) => boardKeys(room, role, window)),
      };
    }),
  });

  const write = ([seq, activity]: readonly string[]): Write =>
    seq === undefined ? { kind: "written" } : { kind: "stale", counted: { seq: Number(seq) as Seq, activity: Number(activity) } };

  return {
    load: async (room) => {
      const [applied, ...uses] = await atOnce(roomKeys(room).map((key) => ["hgetall", key] as const));
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
      const [applied, ...rest] = (await atOnce(wholes.map((key) => ["hgetall", key] as const))).map(fieldsOf);
      const found = loaded(applied!, rest.slice(0, CAPS.length));
      if (found === undefined || found === "deleted") return undefined;
      const [names, ...boards] = rest.slice(CAPS.length);
      const whole = wanted.map((board, index) => ({ ...board, standings: standingsOf(boards[index]!).sort(byRank) }));
      return { ...found, names: names!, boards: whole.filter(({ standings }) => standings.length > 0) };
    },

    restore: async (room, { applied, uses, names, boards }) => {
      const packed = {
        through: [applied.seq, applied.activity],
        applied: textsOf(appliedFields(applied, uses)),
        uses: CAPS.map((cap) => textsOf(uses[cap].points)),
        names: [...names].flat(),
        boards: boards.map(({ role, window, standings }) => ({
          keys: boardKeys(room, role, window),
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
      await atOnce([
        ["unlink", ...roomKeys(room), keys.names(room)],
        ["hset", keys.applied(room), DELETED, 1, "seq", Number.MAX_SAFE_INTEGER, "activity", Number.MAX_SAFE_INTEGER],
      ]);
      for (const role of ROLES) {
        for (const window of windows) {
          const { hot, full, counts, inBand } = keys.board(room, role, window);
          const bands = (await redis.hkeys(counts)).map((band) => `${inBand}${band}`); // Those of `points` and `ordered` are not there.
          await redis.unlink(hot, full, counts, ...bands);
        }
      }
    },

    read: async (room, role, window) => {
      const { hot, full, counts } = keys.board(room, role, window);
      const [applied, entries, members, bands] = await atOnce([
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
        return value == null ? [] : [standingOf(member, value)];
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

/** Fields and values in turn. */
function textsOf(fields: Iterable<readonly [string, number]>): string[] {
  const texts: string[] = [];
  for (const [field, value] of fields) texts.push(field, String(value));
  return texts;
}

function appliedFields(applied: Applied, uses: Uses): (readonly [string, number])[] {
  return [
    ["epoch", applied.epoch],
    ["seq", applied.seq],
    ["streamSeq", applied.streamSeq],
    ["time", applied.time],
    ["missing", applied.missing],
    ["instant", applied.instant],
    ["activity", applied.activity],
    ["activityInstant", applied.activityInstant],
    ...CAPS.map((cap): [string, number] => [periodField(cap), uses[cap].period]),
  ];
}

function periodField(cap: Cap): string {
  return `${cap}Period`;
}

function loaded(
  fields: ReadonlyMap<string, string>,
  points: readonly ReadonlyMap<string, string>[],
): { applied: Applied; uses: Uses } | "deleted" | undefined {
  if (fields.has(DELETED)) return "deleted";
  if (fields.size === 0) return undefined;
  const useOf = (cap: Cap): Use => ({
    period: numberIn(fields, periodField(cap)),
    points: new Map([...points[CAPS.indexOf(cap)]!].map(([user, used]) => [user as UserId, Number(used)])),
  });
  return { applied: appliedOf(fields), uses: { edits: useOf("edits"), deeds: useOf("deeds"), present: useOf("present") } };
}

function appliedOf(fields: ReadonlyMap<string, string>): Applied {
  return {
    epoch: numberIn(fields, "epoch") as Epoch,
    seq: numberIn(fields, "seq") as Seq,
    streamSeq: numberIn(fields, "streamSeq"),
    time: numberIn(fields, "time") as UnixMillis,
    missing: numberIn(fields, "missing"),
    instant: numberIn(fields, "instant"),
    activity: numberIn(fields, "activity"),
    activityInstant: numberIn(fields, "activityInstant"),
  };
}

function boardState(
  applied: ReadonlyMap<string, string>,
  entries: readonly string[],
  members: number,
  counts: ReadonlyMap<string, string>,
): BoardState {
  const bands = new Map([...counts].filter(([field]) => /^\d+$/.test(field)).map(([band, count]) => [Number(band), Number(count)]));
  return {
    applied: applied.size === 0 || applied.has(DELETED) ? undefined : appliedOf(applied),
    hot: orderedOf(entries),
    members,
    points: Number(counts.get("points") ?? 0),
    bands,
    isOrdered: counts.get("ordered") === "1",
  };
}

/** Of a sorted set, in order: stamp and member, then the score. */
function orderedOf(entries: readonly string[]): Standing[] {
  const standings: Standing[] = [];
  for (let index = 0; index < entries.length; index += 2) {
    const entry = entries[index]!;
    standings.push({ member: entry.slice(STAMP_LENGTH), score: Number(entries[index + 1]), reachedAt: reachedAtOf(entry) });
  }
  return standings;
}

/** As the scripts store it: the stamp, then the score. */
function standingOf(member: string, value: string): Standing {
  return { member, score: Number(value.slice(STAMP_LENGTH)), reachedAt: reachedAtOf(value) };
}

function standingsOf(fields: ReadonlyMap<string, string>): Standing[] {
  return [...fields].map(([member, value]) => standingOf(member, value));
}

/** A hash as Redis answers it: fields and values in turn, or by name. */
function fieldsOf(answer: unknown): ReadonlyMap<string, string> {
  if (Array.isArray(answer)) return pairsOf(answer as string[]);
  assert(typeof answer === "object" && answer !== null, "Redis answers a hash");
  return new Map(Object.entries(answer as Record<string, string>));
}

function pairsOf(flat: readonly string[]): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (let index = 0; index < flat.length; index += 2) fields.set(flat[index]!, flat[index + 1]!);
  return fields;
}

function numberIn(fields: ReadonlyMap<string, string>, name: string): number {
  const number = Number(fields.get(name) ?? 0);
  assert(Number.isFinite(number), `the field ${name} of a room's applied hash is a number`);
  return number;
}
