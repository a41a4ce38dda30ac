/** The stored form of a room's boards in Redis: hashes and sorted sets of text. */

import { type Cluster, type Redis, ReplyError } from "ioredis";

import { assert } from "../../shared/assert.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { BoardContents, CountedPosition, RankEntry, Use, Uses } from "../boards/board.ts";
import { type BoardKeys, type Cap, CAPS } from "../boards/keys.ts";

const ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
export const STAMP_LENGTH = 9;
const LATEST = 2 ** 53;

/**
 * The member who reached a score first is ahead. Redis orders members of equal score by their bytes. So a member of the
 * hot set is its stamp followed by its name, and a later instant has a lower stamp. A stamp has nine characters out of
 * 64 in ASCII order, which hold 54 bits: every possible instant.
 */
export function stampOf(reachedAt: number): string {
  assert(Number.isSafeInteger(reachedAt) && reachedAt >= 0, "a score is reached at a seq");
  let rest = LATEST - reachedAt;
  let stamp = "";
  for (let place = 0; place < STAMP_LENGTH; place++) {
    stamp = ALPHABET[rest % 64]! + stamp;
    rest = Math.floor(rest / 64);
  }
  return stamp;
}

/** The instant of a stamp. */
export function reachedAtOf(stamp: string): number {
  let rest = 0;
  for (let place = 0; place < STAMP_LENGTH; place++) rest = rest * 64 + ALPHABET.indexOf(stamp[place]!);
  return LATEST - rest;
}

/** The mark of a deleted room in its applied hash. It is higher than every other mark, so further counting is rejected. */
export const DELETED = "deleted";

/** A board's keys in the order in which scripts receive them. */
export function scriptKeysOf({ hot, full, counts, inBand }: BoardKeys): string[] {
  return [hot, full, counts, inBand];
}

/** Every key that a board may have. Some do not exist. */
export async function allKeysOf(redis: Redis | Cluster, { hot, full, counts, inBand }: BoardKeys): Promise<string[]> {
  const fields = await redis.hkeys(counts); // The bands, `points` and `ordered`.
  return [hot, full, counts, ...fields.map((field) => `${inBand}${field}`)];
}

type Command = readonly [string, ...(string | number)[]];

/** Runs commands in one step. The second argument of each is its key. */
const IN_ONE_STEP = `local answers = {}
for index, command in ipairs(cjson.decode(ARGV[1])) do answers[index] = redis.call(unpack(command)) end
return answers`;

/**
 * All reads happen in one step of Redis. A full Redis refuses transactions, also of reads alone, but no script that reads.
 * Scripts copy their answers twice, so they are used only then.
 */
export async function readInOneStep(redis: Redis | Cluster, commands: readonly Command[]): Promise<unknown[]> {
  return await runTransaction(redis, commands).catch((error: unknown) => {
    if (!isRefusedTransaction(error)) throw error;
    const keys = commands.map(([, key]) => String(key));
    return redis.eval(IN_ONE_STEP, keys.length, ...keys, JSON.stringify(commands)) as Promise<unknown[]>;
  });
}

/** The first word of a refusal is its code. */
function isRefusedTransaction(error: unknown): boolean {
  return error instanceof ReplyError && (error as Error).message.startsWith("EXECABORT ");
}

/** All commands happen in one step of Redis. */
export async function runTransaction(redis: Redis | Cluster, commands: readonly Command[]): Promise<unknown[]> {
  const answers = await redis.multi(commands.map(([name, ...args]) => [name, ...args])).exec();
  if (answers === null) throw new Error("Redis did not run a transaction: was its connection lost?");
  return answers.map(([error, answer]) => {
    if (error !== null) throw error;
    return answer;
  });
}

/** Fields and values alternate. */
export function textsOf(fields: Iterable<readonly [string, number]>): string[] {
  const texts: string[] = [];
  for (const [field, value] of fields) texts.push(field, String(value));
  return texts;
}

export function appliedFields(applied: CountedPosition, uses: Uses): (readonly [string, number])[] {
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

export function loaded(
  fields: ReadonlyMap<string, string>,
  points: readonly ReadonlyMap<string, string>[],
): { applied: CountedPosition; uses: Uses } | "deleted" | undefined {
  if (fields.has(DELETED)) return "deleted";
  if (fields.size === 0) return undefined;
  const useOf = (cap: Cap): Use => ({
    period: numberIn(fields, periodField(cap)),
    points: new Map([...points[CAPS.indexOf(cap)]!].map(([user, used]) => [user as UserId, Number(used)])),
  });
  return { applied: appliedOf(fields), uses: { edits: useOf("edits"), deeds: useOf("deeds"), present: useOf("present") } };
}

function appliedOf(fields: ReadonlyMap<string, string>): CountedPosition {
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

export function boardState(
  applied: ReadonlyMap<string, string>,
  entries: readonly string[],
  members: number,
  counts: ReadonlyMap<string, string>,
): BoardContents {
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

/** A sorted set in order: stamp and member, then the score. */
export function orderedOf(entries: readonly string[]): RankEntry[] {
  const standings: RankEntry[] = [];
  for (let index = 0; index < entries.length; index += 2) {
    const entry = entries[index]!;
    standings.push({ member: entry.slice(STAMP_LENGTH), score: Number(entries[index + 1]), reachedAt: reachedAtOf(entry) });
  }
  return standings;
}

/** As the scripts store it: the stamp, then the score. */
export function rankEntryOf(member: string, value: string): RankEntry {
  return { member, score: Number(value.slice(STAMP_LENGTH)), reachedAt: reachedAtOf(value) };
}

export function rankEntriesOf(fields: ReadonlyMap<string, string>): RankEntry[] {
  return [...fields].map(([member, value]) => rankEntryOf(member, value));
}

/** A hash as Redis returns it: alternating fields and values, or an object. */
export function fieldsOf(answer: unknown): ReadonlyMap<string, string> {
  if (Array.isArray(answer)) return pairsOf(answer as string[]);
  assert(typeof answer === "object" && answer !== null, "Redis answers a hash");
  return new Map(Object.entries(answer as Record<string, string>));
}

export function pairsOf(flat: readonly string[]): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (let index = 0; index < flat.length; index += 2) fields.set(flat[index]!, flat[index + 1]!);
  return fields;
}

function numberIn(fields: ReadonlyMap<string, string>, name: string): number {
  const number = Number(fields.get(name) ?? 0);
  assert(Number.isFinite(number), `the field ${name} of a room's applied hash is a number`);
  return number;
}
