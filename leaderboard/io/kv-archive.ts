/**
 * Archived windows in JetStream KV. Each kind of window has its own bucket, because each kind is kept for a different
 * time. An entry is created once.
 */

import { deflateRaw, inflateRaw } from "node:zlib";
import { promisify } from "node:util";

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";
import { z } from "zod";

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { TenantId, UnixMillis } from "../../shared/ids.ts";
import { kvBucket, replaceRevision } from "../../shared/io/jetstream-stores.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { NOTHING_APPLIED } from "../boards/board.ts";
import { WrittenApplied } from "../boards/checkpoint.ts";
import { type BoardOwner, isTenantBoard, ROLES, type TenantBoard, tenantBoard, tenantOfBoard } from "../boards/keys.ts";
import type { Archive, ArchivedWindow } from "../ports.ts";
import { type Window, WINDOW_KINDS, type WindowKind } from "../boards/windows.ts";

const [deflate, inflate] = [promisify(deflateRaw), promisify(inflateRaw)];
const DAY_MS = 86_400_000;
const KEPT_FOR_GOOD: readonly WindowKind[] = ["month", "year"];

export const Written = z.object({
  applied: WrittenApplied,
  boards: z.array(
    z.object({ role: z.enum(ROLES), members: z.int(), points: z.number(), standings: z.array(z.tuple([z.string(), z.number(), z.int()])) }),
  ),
});

/** Earlier versions archived a tenant's rooms in this form, and of its people only their number. */
export const EarlierTenant = z.object({
  rooms: z.int(),
  people: z.int(),
  ranking: z.array(z.object({ rank: z.int(), room: z.string(), points: z.number() })),
});

export async function kvArchive(
  nats: NatsConnection,
  subjects: Subjects,
  options: { replicas: number; daysMax: number },
): Promise<{ archive: Archive }> {
  const { streams } = await jetstreamManager(nats);
  const buckets = new Map<WindowKind, KV>();
  for (const kind of WINDOW_KINDS) {
    if (kind === "all") continue;
    const ttl = KEPT_FOR_GOOD.includes(kind) ? 0 : options.daysMax * DAY_MS;
    buckets.set(kind, await kvBucket(jetstream(nats), subjects.boardArchiveBucket(kind), { replicas: options.replicas, ttl }));
  }
  /** The owner of a tenant's board contains a slash, so that no removal of a room finds its keys. */
  const keyOf = (owner: BoardOwner | TenantId, window: Window) => `${owner}.${window.id}`;
  const writeOnce = async (owner: BoardOwner, window: Window, written: object): Promise<"written" | "there"> => {
    const bucket = buckets.get(window.kind);
    if (bucket === undefined) return "there"; // The window "all time" never closes.
    const revision = await replaceRevision(bucket, keyOf(owner, window), await deflate(JSON.stringify(written)), 0);
    return revision === undefined ? "there" : "written";
  };
  const readBack = async <Read>(owner: BoardOwner | TenantId, window: Window, schema: z.ZodType<Read>): Promise<Read | undefined> => {
    const entry = await buckets.get(window.kind)?.get(keyOf(owner, window));
    if (entry == null || entry.operation !== "PUT") return undefined;
    const { data } = schema.safeParse(JSON.parse((await inflate(entry.value)).toString()));
    if (data === undefined) {
      throw new Error(`the archived window ${window.id} of ${owner} does not decode: was it written by a newer version?`);
    }
    return data;
  };
  const readEarlier = async (owner: TenantBoard, window: Window): Promise<ArchivedWindow | undefined> => {
    const data = await readBack(tenantOfBoard(owner), window, EarlierTenant);
    return data && earlierWindow(owner, window, data);
  };
  const archive: Archive = {
    write: (owner, window, { applied, boards }) => {
      const written: z.input<typeof Written> = {
        applied,
        boards: boards.map((board) => ({
          ...board,
          standings: board.standings.map(({ member, score, reachedAt }) => [member, score, reachedAt]),
        })),
      };
      return writeOnce(owner, window, written);
    },
    read: async (owner, window) => {
      const data = await readBack(owner, window, Written);
      if (data === undefined) return isTenantBoard(owner) ? readEarlier(owner, window) : undefined;
      return {
        applied: data.applied,
        boards: data.boards.map((board) => ({
          ...board,
          standings: board.standings.map(([member, score, reachedAt]) => ({ member, score, reachedAt })),
        })),
      };
    },
    // The client's `keys()` leaves a consumer for minutes if it finds nothing, and nats-server limits consumers.
    remove: async (room) => {
      for (const [kind, bucket] of buckets) {
        const name = subjects.boardArchiveBucket(kind);
        const before = `$KV.${name}.`;
        const { state } = await streams.info(`KV_${name}`, { subjects_filter: `${before}${room}.*` });
        for (const subject of Object.keys(state.subjects ?? {})) await bucket.purge(subject.slice(before.length));
      }
    },
  };
  return { archive };
}

function earlierWindow(owner: TenantBoard, { end }: Window, { rooms, people, ranking }: z.infer<typeof EarlierTenant>): ArchivedWindow {
  const isOfRooms = owner === tenantBoard(tenantOfBoard(owner), "rooms");
  const points = ranking.reduce((sum, ranked) => sum + ranked.points, 0);
  const standings = ranking.map(({ room, points: score }, index) => ({ member: room, score, reachedAt: index }));
  const board = isOfRooms ? { members: rooms, points, standings } : { members: people, points, standings: [] };
  return { applied: { ...NOTHING_APPLIED, time: end as UnixMillis }, boards: [{ role: "everyone", ...board }] };
}
