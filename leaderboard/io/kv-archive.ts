/**
 * Archived windows in JetStream KV. Each kind of window has its own bucket, because each kind is kept for a different
 * time. An entry is created once.
 */

import { deflateRaw, inflateRaw } from "node:zlib";
import { promisify } from "node:util";

import { jetstream } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import { z } from "zod";

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { RoomId, RoomKey, TenantId } from "../../shared/ids.ts";
import { kvBucket, replaceRevision } from "../../shared/io/jetstream-stores.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { WrittenApplied } from "../boards/checkpoint.ts";
import { ROLES } from "../boards/keys.ts";
import type { Archive, TenantArchive } from "../ports.ts";
import { type Window, WINDOW_KINDS, type WindowKind } from "../boards/windows.ts";

const [deflate, inflate] = [promisify(deflateRaw), promisify(inflateRaw)];
const DAY_MS = 86_400_000;
const KEPT_FOR_GOOD: readonly WindowKind[] = ["month", "year"];

const Written = z.object({
  applied: WrittenApplied,
  boards: z.array(
    z.object({ role: z.enum(ROLES), members: z.int(), points: z.number(), standings: z.array(z.tuple([z.string(), z.number(), z.int()])) }),
  ),
});

const WrittenRooms = z.object({
  rooms: z.int(),
  people: z.int(),
  ranking: z.array(z.object({ rank: z.int(), room: z.string().transform((text) => text as RoomId), points: z.number() })),
});

export async function kvArchive(
  nats: NatsConnection,
  subjects: Subjects,
  options: { replicas: number; daysMax: number },
): Promise<{ archive: Archive; tenantArchive: TenantArchive }> {
  const buckets = new Map<WindowKind, KV>();
  for (const kind of WINDOW_KINDS) {
    if (kind === "all") continue;
    const ttl = KEPT_FOR_GOOD.includes(kind) ? 0 : options.daysMax * DAY_MS;
    buckets.set(kind, await kvBucket(jetstream(nats), subjects.boardArchiveBucket(kind), { replicas: options.replicas, ttl }));
  }
  /** A room's key has two tokens, a tenant's one. */
  const keyOf = (owner: RoomKey | TenantId, window: Window) => `${owner}.${window.id}`;
  const writeOnce = async (owner: RoomKey | TenantId, window: Window, written: object): Promise<"written" | "there"> => {
    const bucket = buckets.get(window.kind);
    if (bucket === undefined) return "there"; // The window "all time" never closes.
    const revision = await replaceRevision(bucket, keyOf(owner, window), await deflate(JSON.stringify(written)), 0);
    return revision === undefined ? "there" : "written";
  };
  const readBack = async <Read>(owner: RoomKey | TenantId, window: Window, schema: z.ZodType<Read>): Promise<Read | undefined> => {
    const entry = await buckets.get(window.kind)?.get(keyOf(owner, window));
    if (entry == null || entry.operation !== "PUT") return undefined;
    const { data } = schema.safeParse(JSON.parse((await inflate(entry.value)).toString()));
    if (data === undefined) {
      throw new Error(`the archived window ${window.id} of ${owner} does not decode: was it written by a newer version?`);
    }
    return data;
  };
  const archive: Archive = {
    write: (room, window, { applied, boards }) => {
      const written: z.input<typeof Written> = {
        applied,
        boards: boards.map((board) => ({
          ...board,
          standings: board.standings.map(({ member, score, reachedAt }) => [member, score, reachedAt]),
        })),
      };
      return writeOnce(room, window, written);
    },
    read: async (room, window) => {
      const data = await readBack(room, window, Written);
      return (
        data && {
          applied: data.applied,
          boards: data.boards.map((board) => ({
            ...board,
            standings: board.standings.map(([member, score, reachedAt]) => ({ member, score, reachedAt })),
          })),
        }
      );
    },
    remove: async (room) => {
      for (const bucket of buckets.values()) for await (const key of await bucket.keys(`${room}.*`)) await bucket.purge(key);
    },
  };
  const tenantArchive: TenantArchive = { write: writeOnce, read: (tenant, window) => readBack(tenant, window, WrittenRooms) };
  return { archive, tenantArchive };
}
