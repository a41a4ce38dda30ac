/**
 * The vitals of a process: the few numbers that the operations console shows over time. Each process reads them from its
 * own metrics and publishes them every five seconds; gateways keep the last hour.
 */

import { z } from "zod";

import { parseRoomKey, type RoomKey } from "../ids.ts";
import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";
import { BusRange } from "./bus-version.ts";

export const VITALS_EVERY_MS = 5_000;
/** A room server describes its largest rooms only. */
export const VITAL_ROOMS_MAX = 20;

export const VITAL_ROLES = ["gateway", "room-server", "document-service", "leaderboard", "placement"] as const;
export type VitalRole = (typeof VITAL_ROLES)[number];

/**
 * `per-second`: increase of a counter. `p50`, `p99`: of a histogram's observations since the previous reading, which is
 * absent if there were none.
 */
export type VitalSource = { readonly metric: string; readonly reads: "value" | "highest" | "per-second" | "p50" | "p99" };

/** Where each role reads its vitals. The memory of a process is added to all. */
export const VITAL_SOURCES = {
  "gateway": {
    connections: { metric: "coroom_gateway_connections", reads: "value" },
    refusedPerSecond: { metric: "coroom_gateway_refused_connections_total", reads: "per-second" },
    presencePerSecond: { metric: "coroom_gateway_presence_received_total", reads: "per-second" },
    saveP50: { metric: "coroom_gateway_save_seconds", reads: "p50" },
    saveP99: { metric: "coroom_gateway_save_seconds", reads: "p99" },
    outboundP99: { metric: "coroom_gateway_outbound_p99_seconds", reads: "value" },
    natsLag: { metric: "coroom_gateway_nats_lag_seconds", reads: "value" },
    loopDelay: { metric: "coroom_gateway_loop_delay_seconds", reads: "value" },
    shedLevel: { metric: "coroom_gateway_shed_level", reads: "value" },
    storedBytes: { metric: "coroom_gateway_jetstream_bytes", reads: "value" },
    diskFreeBytes: { metric: "coroom_engines_disk_free_bytes", reads: "value" },
  },
  "room-server": {
    rooms: { metric: "coroom_room_server_rooms", reads: "value" },
    participants: { metric: "coroom_participants", reads: "value" },
    editsPerSecond: { metric: "coroom_edits_committed_total", reads: "per-second" },
    appendP50: { metric: "coroom_log_append_seconds", reads: "p50" },
    appendP99: { metric: "coroom_log_append_seconds", reads: "p99" },
    loopDelay: { metric: "coroom_room_server_loop_delay_seconds", reads: "value" },
  },
  "document-service": { uncoveredRecords: { metric: "coroom_documents_uncovered_records", reads: "value" } },
  "leaderboard": { boardsBehind: { metric: "coroom_boards_behind_seconds", reads: "highest" } },
  "placement": {},
} as const satisfies Record<VitalRole, Readonly<Record<string, VitalSource>>>;

type SourcesOf<Role extends VitalRole> = (typeof VITAL_SOURCES)[Role];
type KeysOf<Sources> = Sources extends unknown ? keyof Sources : never;
export type VitalName = KeysOf<SourcesOf<VitalRole>> | "memoryBytes";

/** Vitals of several processes that are added. The others show the process with the highest value. */
const ADDED: ReadonlySet<string> = new Set<VitalName>([
  "connections",
  "refusedPerSecond",
  "presencePerSecond",
  "rooms",
  "participants",
  "editsPerSecond",
]);

export function isAdded(vital: string): boolean {
  return ADDED.has(vital);
}

const room = z.string().transform((text, context) => {
  const key = parseRoomKey(text);
  if (key === undefined) context.addIssue("not a room key");
  return key as RoomKey;
});

export const VitalRoom = z.object({
  room,
  participants: z.int().nonnegative(),
  editsPerSecond: z.number().nonnegative(),
  mode: z.enum(Object.keys(ROOM_MODES) as [RoomMode, ...RoomMode[]]),
});
export type VitalRoom = z.output<typeof VitalRoom>;

/**
 * every process -> gateways, placement. `version`: of Coroom. 0.2.0 and earlier versions send neither it nor `bus`. `rooms`: from room
 * servers, those with most participants. `ends`: the last vitals before an orderly stop. `count`: the process's vitals so far.
 * Earlier versions send neither.
 */
export const Vitals = z.object({
  instance: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  role: z.enum(VITAL_ROLES),
  version: z.string().max(32).optional(),
  bus: BusRange.optional(),
  ends: z.boolean().optional(),
  count: z.int().optional(),
  values: z.record(z.string().max(32), z.number()),
  rooms: z.array(VitalRoom).max(VITAL_ROOMS_MAX).optional(),
});
export type Vitals = z.output<typeof Vitals>;

/** A metric at one moment: the sum and the highest of its labels, or a histogram's cumulative counts by upper bound. */
export type MetricReading = { readonly total: number; readonly highest: number; readonly buckets: ReadonlyMap<number, number> };

/** `before`: undefined at the first reading, which gives no rate and no percentile. */
export function vitalOf(
  { reads }: VitalSource,
  reading: MetricReading,
  before: MetricReading | undefined,
  elapsedMs: number,
): number | undefined {
  if (reads === "value") return reading.total;
  if (reads === "highest") return reading.highest;
  if (before === undefined || elapsedMs <= 0) return undefined;
  if (reads === "per-second") return Math.max(0, ((reading.total - before.total) * 1_000) / elapsedMs);
  return quantile(reads === "p50" ? 0.5 : 0.99, reading.buckets, before.buckets);
}

/**
 * The observation of this rank among those between two readings, interpolated within its bucket. An observation above
 * all bounds counts as the highest bound.
 */
function quantile(rank: number, buckets: ReadonlyMap<number, number>, before: ReadonlyMap<number, number>): number | undefined {
  const bounds = [...buckets.keys()].sort((a, b) => a - b);
  const counts = bounds.map((bound) => buckets.get(bound)! - (before.get(bound) ?? 0));
  const all = counts.at(-1) ?? 0;
  if (all <= 0) return undefined;
  const at = counts.findIndex((count) => count >= rank * all);
  const [upper, lower] = [bounds[at]!, bounds[at - 1] ?? 0];
  if (upper === Number.POSITIVE_INFINITY) return lower;
  const [through, below] = [counts[at]!, counts[at - 1] ?? 0];
  return lower + ((upper - lower) * (rank * all - below)) / Math.max(1, through - below);
}
