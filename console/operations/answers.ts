/** What a gateway answers the console, as `gateway/operations-openapi.json` and `gateway/openapi.json` describe it. */

export type Server = {
  readonly server: string;
  readonly rooms: number;
  readonly draining: boolean;
  readonly host: string;
  readonly zone: string;
  readonly pool: string;
  readonly used: number;
  readonly hot: readonly { readonly tenant: string; readonly room: string; readonly share: number }[];
};
export type GatewayState = "ready" | "draining" | "degraded" | "misconfigured" | "slow";
export type Gateway = {
  readonly gateway: string;
  readonly connections: number;
  readonly rooms: number;
  readonly shedLevel: number;
  readonly state: GatewayState;
  readonly reachesRedis?: boolean;
};
export type LostServer = { readonly server: string; readonly rooms: number; readonly at: string };
/** `at`: when it was said, by the clock of the system. `reachesNats`: false where the gateway that was asked hears of nobody. `services`: how many are heard. */
export type Fleet = {
  readonly environment: string;
  readonly at: string;
  readonly reachesNats: boolean;
  readonly servers: readonly Server[];
  /** Absent from a gateway of an earlier version. */
  readonly serversLost?: readonly LostServer[];
  readonly gateways: readonly Gateway[];
  readonly placement: { readonly leader?: string };
  readonly services: { readonly documents: number; readonly leaderboards: number; readonly leaderboardsWithoutRedis: number };
};

export type RoomName = { readonly tenant: string; readonly room: string };
export type ListedRoom = RoomName & {
  readonly server: string;
  readonly mode: "flat" | "hierarchical";
  readonly participants: number;
  readonly gateways: number;
  readonly editsPerSecond: number;
  readonly heldBack: number;
};
export type RoomPage = {
  readonly rooms: readonly ListedRoom[];
  readonly matching: number;
  readonly servers: number;
  readonly serversKnown: number;
  readonly next?: string;
};
export type Room = RoomName & {
  readonly server: string;
  readonly epoch: number;
  readonly mode: "flat" | "hierarchical";
  readonly participants: number;
  readonly heldBack: number;
  readonly gateways: readonly { readonly gateway: string; readonly members: number }[];
  readonly placed?: { readonly reason: string; readonly at: string; readonly replica?: string };
};
export type Member = { readonly user: string; readonly name: string; readonly connection: string; readonly write: boolean };

/** `facts` beside those named depend on the kind; see `shared/bus/operations-events.ts`. */
export type OperationsEvent = {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly by: string;
  readonly tenant?: string;
  readonly room?: string;
} & Readonly<Record<string, unknown>>;
/** Rooms that `by` took over from a server that had not let them go. `seq`: stays as `count` grows. `rooms`: the first few. */
export type Takeover = {
  readonly seq: number;
  readonly at: string;
  readonly by: string;
  readonly from: string;
  readonly tenant: string;
  readonly count: number;
  readonly rooms: readonly string[];
};
export type EventsSince = {
  readonly events: readonly OperationsEvent[];
  /** Absent from a gateway of an earlier version, as may answer while versions are exchanged. */
  readonly takeovers?: readonly Takeover[];
  readonly last: number;
};

export type Ban = {
  readonly kind: "user" | "address";
  readonly tenant?: string;
  readonly user?: string;
  readonly address?: string;
  readonly room?: string;
  readonly level: "banned" | "read-only";
  readonly until: string;
  readonly reason: string;
};

export type Tone = "calm" | "good" | "warning" | "trouble";
