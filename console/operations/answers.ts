/** Answers of the admin API, as `gateway/operations-openapi.json` and `gateway/openapi.json` describe them. */

export type FleetServer = {
  readonly server: string;
  readonly rooms: number;
  readonly draining: boolean;
  readonly host: string;
  readonly zone: string;
  readonly pool: string;
  readonly used: number;
  /** The reason why the log currently stores no edits of this server. */
  readonly logObstacle?: string;
  readonly hot: readonly { readonly tenant: string; readonly room: string; readonly share: number }[];
};
export type FleetGatewayState = "ready" | "draining" | "degraded" | "misconfigured" | "slow" | "log-full";
export type FleetGateway = {
  readonly gateway: string;
  readonly connections: number;
  readonly rooms: number;
  readonly shedLevel: number;
  readonly state: FleetGatewayState;
  readonly reachesRedis?: boolean;
};
type FleetLostServer = { readonly server: string; readonly rooms: number; readonly at: string };
/**
 * `version`: absent if the process runs 0.2.0 or an earlier version. `busVersion`: absent in answers of an earlier
 * version. `cannotWorkWith`: bus versions of other processes.
 */
export type FleetProcess = {
  readonly instance: string;
  readonly role: string;
  readonly version?: string;
  readonly busVersion?: number;
  readonly cannotWorkWith?: readonly number[];
};
/**
 * `at`: time of the answer by the gateway's clock. `reachesNats`: false when the gateway receives no heartbeats.
 * `services`: number of live services.
 */
export type FleetAnswer = {
  readonly environment: string;
  readonly at: string;
  readonly reachesNats: boolean;
  readonly servers: readonly FleetServer[];
  /** Absent in answers of an earlier version. */
  readonly serversLost?: readonly FleetLostServer[];
  readonly gateways: readonly FleetGateway[];
  readonly placement: { readonly leader?: string };
  readonly services: { readonly documents: number; readonly leaderboards: number; readonly leaderboardsWithoutRedis: number };
  /** Absent in answers of an earlier version. */
  readonly processes?: readonly FleetProcess[];
  /** Of the disk with the data of nats-server and redis-server, in a local system. */
  readonly diskFreeBytes?: number;
};

export type RoomName = { readonly tenant: string; readonly room: string };
export type ListedRoomRow = RoomName & {
  readonly server: string;
  readonly mode: "flat" | "hierarchical";
  readonly participants: number;
  readonly gateways: number;
  readonly editsPerSecond: number;
  readonly heldBack: number;
};
export type RoomPageAnswer = {
  readonly rooms: readonly ListedRoomRow[];
  readonly matching: number;
  readonly servers: number;
  readonly serversKnown: number;
  readonly next?: string;
};
export type RoomDetails = RoomName & {
  readonly server: string;
  readonly epoch: number;
  readonly mode: "flat" | "hierarchical";
  readonly participants: number;
  readonly heldBack: number;
  readonly gateways: readonly { readonly gateway: string; readonly members: number }[];
  readonly placed?: { readonly reason: string; readonly at: string; readonly replica?: string };
};
export type ListedMember = { readonly user: string; readonly name: string; readonly connection: string; readonly write: boolean };

/** Each `kind` has further fields: see `shared/bus/operations-events.ts`. */
export type ListedEvent = {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly by: string;
  readonly tenant?: string;
  readonly room?: string;
} & Readonly<Record<string, unknown>>;
/**
 * Rooms that `by` took over from a server that had not released them. `seq` stays the same while `count` grows.
 * `rooms`: the first few names.
 */
export type ListedTakeover = {
  readonly seq: number;
  readonly at: string;
  readonly by: string;
  readonly from: string;
  readonly tenant: string;
  readonly count: number;
  readonly rooms: readonly string[];
};
export type EventsAnswer = {
  readonly events: readonly ListedEvent[];
  /** Absent in answers of an earlier version, which can occur during an upgrade. */
  readonly takeovers?: readonly ListedTakeover[];
  readonly last: number;
};

/** Values of slots of `everyMs`, numbered from the Unix epoch; `from` is the slot of the first value. */
export type VitalsAnswer = {
  readonly everyMs: number;
  readonly from: number;
  readonly series: readonly { readonly role: string; readonly vital: string; readonly values: readonly (number | null)[] }[];
  readonly processes: readonly { readonly instance: string; readonly role: string }[];
};
export type RoomVitalsAnswer = {
  readonly everyMs: number;
  readonly from: number;
  readonly participants: readonly (number | null)[];
  readonly editsPerSecond: readonly (number | null)[];
};

export type ListedBan = {
  readonly kind: "user" | "address";
  readonly tenant?: string;
  readonly user?: string;
  readonly address?: string;
  readonly room?: string;
  readonly level: "banned" | "read-only";
  readonly until: string;
  readonly reason: string;
};

export type HealthTone = "calm" | "good" | "warning" | "error";
