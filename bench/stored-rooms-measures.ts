/** What stored rooms take in Redis, by the windows of their boards, and in the streams of NATS. For `stored-rooms.bench.ts`. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { jetstreamManager } from "@nats-io/jetstream";

import { parseWindow, WINDOW_KINDS, type WindowKind } from "../leaderboard/boards/windows.ts";
import type { NatsConnection } from "../shared/io/nats.ts";
import type { RedisConnection } from "../shared/io/redis.ts";

type Redis = RedisConnection["redis"];
export type Amount = { readonly count: number; readonly bytes: number };

/** Keys of boards by the kind of their window. "none": names, marks, caps, and the lists of windows to archive. */
export const KEY_KINDS = [...WINDOW_KINDS, "none"] as const;
export type KeyKind = (typeof KEY_KINDS)[number];

/** The window in a key of `keysOf`, for example `{env}:board:{acme.notes}:everyone:2026-W07:hot`. */
const BOARD_KEY = /\}(?::people|:rooms)?:(?:everyone|editors|commenters):([^:]+):(?:hot|full|counts|in:|of:)/;

export function kindOfKey(key: string): KeyKind {
  const id = BOARD_KEY.exec(key)?.[1];
  const kind: WindowKind | undefined = id === undefined ? undefined : parseWindow(id)?.kind;
  return kind ?? "none";
}

const AT_ONCE = 1_000;

/** Of all keys, with their values and the server's overhead for each. The table of keys is not included. */
export async function redisByWindow(redis: Redis): Promise<Readonly<Record<KeyKind, Amount>>> {
  const counts = new Map<KeyKind, Amount>(KEY_KINDS.map((kind) => [kind, { count: 0, bytes: 0 }]));
  let cursor = "0";
  do {
    const [next, keys] = (await redis.call("SCAN", cursor, "COUNT", AT_ONCE)) as [string, string[]];
    const sizes = await Promise.all(keys.map((key) => redis.call("MEMORY", "USAGE", key, "SAMPLES", "0")));
    for (const [index, key] of keys.entries()) {
      const kind = kindOfKey(key);
      const { count, bytes } = counts.get(kind)!;
      counts.set(kind, { count: count + 1, bytes: bytes + Number(sizes[index] ?? 0) });
    }
    cursor = next;
  } while (cursor !== "0");
  return Object.fromEntries(counts) as Record<KeyKind, Amount>;
}

/** A field of `INFO`. */
export async function redisInfo(redis: Redis, name: string): Promise<number> {
  const line = ((await redis.call("INFO", "everything")) as string).split("\r\n").find((text) => text.startsWith(`${name}:`));
  return Number(line?.slice(name.length + 1));
}

export type StreamAmount = Amount & { readonly subjects: number };

/** Messages, subjects and bytes of each stream with messages. The partitions of the log count together, as `log`. */
export async function natsByStream(nats: NatsConnection, environment: string): Promise<Readonly<Record<string, StreamAmount>>> {
  const amounts: Record<string, StreamAmount> = {};
  const { streams } = await jetstreamManager(nats);
  for await (const { config, state } of streams.list()) {
    if (state.messages === 0) continue;
    const name = config.name.replace(`${environment}_`, "").replace(/^(log|activity)_\d+$/, "$1");
    const before = amounts[name] ?? { count: 0, bytes: 0, subjects: 0 };
    amounts[name] = {
      count: before.count + state.messages,
      bytes: before.bytes + state.bytes,
      subjects: before.subjects + (state.num_subjects ?? 0),
    };
  }
  return amounts;
}

/** What was left after a nats-server's last collection of garbage, in megabytes. Its log has a line for each, as Go writes it. */
export function liveHeapBytes(logFile: string): number {
  const collections = readFileSync(logFile, "utf8").matchAll(/ \d+->\d+->(\d+) MB, \d+ MB goal/g);
  return Number([...collections].at(-1)?.[1] ?? 0) * 1024 ** 2;
}

/** Bytes of all files in the folder, as the disk counts them. */
export function folderBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).reduce((sum, entry) => {
    if (!entry.isFile()) return sum;
    const { blocks } = statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false }) ?? { blocks: 0 };
    return sum + blocks * 512;
  }, 0);
}
