/** What the gateway needs from outside. `io/` implements each port, and tests fake it. */

import type { FullStorage, StoragePeaks } from "../shared/bus/storage-messages.ts";
import type { Activity } from "../shared/bus/activity.ts";
import type { DisplayName, BoardWatch } from "../shared/bus/board-messages.ts";
import type { AdminCommand, AdminReply, RoomMember, Sanction } from "../shared/bus/admin-messages.ts";
import type { CountsReport } from "../shared/bus/counts-report.ts";
import type { OwnerReply, SubmittedEdit, ToOwner } from "../shared/bus/envelope.ts";
import type { PresenceUp } from "../shared/bus/presence-batches.ts";
import type { GatewayReport, RoomListReply, RoomListRequest, RoomReport } from "../shared/bus/fleet-messages.ts";
import type {
  ClaimReply,
  ClaimRequest,
  LocateReply,
  LocateRequest,
  ServerCommandReply,
  PlannedRoom,
  RoomPin,
  ServerHeartbeat,
  MoveOutcome,
} from "../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId, TenantId } from "../shared/ids.ts";
import type { CloseName } from "../shared/wire/close-codes.ts";
import type { Channel, Counter } from "../shared/wire/frames.ts";
import type { ClientAddress } from "../shared/limits/client-address.ts";
import type { TokenVerdict } from "./sessions/identity.ts";
import type { CommittedBatch } from "../shared/wire/committed-edits.ts";
import type { RecentEventLog } from "./operations/events-kept.ts";
import type { LostRoomServer } from "./operations/servers-lost.ts";
import type { ConnectionSample } from "./usage/connection-samples.ts";
import type { StoredUsage } from "./usage/usage-counts.ts";
import type { UsageDay } from "../shared/time/usage-day.ts";
import type { UsageBatch } from "./usage/usage-days.ts";

declare const connection: unique symbol;
/** One socket, while it is open. */
export type ConnectionId = number & { readonly [connection]: true };

/** `has-edits`: the document service knows edits of the room, so the application is not asked. `counter`: of this content's edit. */
export type FirstContentAnswer =
  | { readonly kind: "content"; readonly edit: Uint8Array; readonly counter: Counter }
  | { readonly kind: "none" }
  | { readonly kind: "has-edits" }
  | { readonly kind: "failed" };

/** The application's own store of documents, reached through the document service. */
export interface ApplicationContents {
  /** The name of the application that is asked for the first content of this tenant's rooms. Undefined: none. */
  applicationOf(tenant: TenantId): string | undefined;
  /** False too if no document service answers. Never rejects, and asks no application. */
  hasEdits(room: RoomKey): Promise<boolean>;
  /** Never rejects. */
  requestContent(room: RoomKey): Promise<FirstContentAnswer>;
}

/** The clients' sockets. Frames to one connection keep their order, whether sent or published. */
export interface Sockets {
  send(to: ConnectionId, frame: Uint8Array): void;
  /** To every listener of the channel except one connection. Returns the number of recipients. */
  publish(channel: Channel, frame: Uint8Array, except: ConnectionId | undefined): number;
  listen(connection: ConnectionId, channel: Channel): void;
  unlisten(connection: ConnectionId, channel: Channel): void;
  /**
   * Calls back in a later turn, once the socket holds no unread data. The callbacks of a connection are called one at a
   * time, so that each may send. None is called after the connection has closed.
   */
  whenRead(connection: ConnectionId, receive: () => void): void;
  close(connection: ConnectionId, close: CloseName): void;
}

/** Named topics that many connections listen to. */
export interface Topics {
  /** `except` is a connection that has the frame's content already. Returns the number of recipients. */
  publishTo(topic: string, frame: Uint8Array, except?: ConnectionId): number;
  listenTo(connection: ConnectionId, topic: string): void;
  unlistenTo(connection: ConnectionId, topic: string): void;
}

/** The leaderboards over the bus. Every message is lost while the connection is down. */
export interface BoardBus {
  /** Receives updates of the room's boards from now on. */
  follow(room: RoomKey): void;
  unfollow(room: RoomKey): void;
  watch(watch: BoardWatch): void;
  /** At most as many as one message holds. */
  publishNames(names: readonly DisplayName[]): void;
  /** The number of leaderboards that send heartbeats. */
  leaderboards(): number;
}

/** `known`: already stored under the same id. `full`: activities arrive faster than they are counted. */
export type ActivityOutcome = "stored" | "known" | "full" | "unavailable";

/** Stores activities that are worth points until they are counted. */
export interface Activities {
  /**
   * An id counts once, even if it is sent several times. After `unavailable` it is unknown whether the activity is
   * stored: send it again.
   */
  storeActivity(room: RoomKey, activity: Activity, id: string): Promise<ActivityOutcome>;
}

/** The rooms' owners, reached over the bus. Messages from owners arrive at `Backbone`. */
export interface RoomOwners {
  /** Resolves when no later message in the room is missed. Rejects when the connection is lost; `receiveBackboneFound` follows. */
  follow(room: RoomKey): Promise<void>;
  unfollow(room: RoomKey): void;
  /**
   * To the room's owner, at the end of the turn; lost while the connection is down. `epoch`: the newest that the sender
   * knows. An owner in this process gets the message directly if it owns the room in that epoch.
   */
  sendToOwner(room: RoomKey, message: ToOwner, epoch: Epoch): void;
}

/**
 * Presence over the bus, on a separate connection. Messages are lost while the connection is down. Messages from room
 * servers arrive at `PresenceBackbone`.
 */
export interface PresenceServers {
  sendBatch(server: ServerId, batch: Pick<PresenceUp, "sentAtMs" | "entries">): void;
  /** To the room server that owns the room, when its name is not known. */
  askOwner(room: RoomKey, question: Uint8Array): void;
  /** To every room server. A room server that does not receive it removes this gateway's members. */
  publishHeartbeat(): void;
}

/** Receives the presence messages of the bus. */
export interface PresenceBackbone {
  receiveBatch(server: ServerId, bytes: Uint8Array): void;
  /** NATS reports that no server with this name is subscribed. */
  receiveServerGone(server: ServerId): void;
  /** NATS reports that the room has no owner. */
  receiveNoOwner(room: RoomKey): void;
  receiveBackboneLost(): void;
  receiveBackboneFound(): void;
}

/** Receives the messages of the bus. */
export interface Backbone {
  receiveFromOwner(room: RoomKey, bytes: Uint8Array): void;
  receiveAnswer(room: RoomKey, bytes: Uint8Array): void;
  receiveNoResponders(room: RoomKey): void;
  receiveBackboneLost(): void;
  /** Every followed room is subscribed again. Messages sent meanwhile are lost. */
  receiveBackboneFound(): void;
}

/** Finds a room's owner. Undefined: no answer in time. */
export interface Placement {
  locate(request: LocateRequest): Promise<LocateReply | undefined>;
  claim(server: ServerId, request: ClaimRequest): Promise<ClaimReply | undefined>;
  /** Room servers with a recent heartbeat, the best one for the room first. Used while placement does not answer. */
  candidates(room: RoomKey): readonly ServerId[];
  /**
   * Whether NATS reports that this server has no subscription. If so, room servers are informed, and those with
   * replicas of its rooms take them over.
   */
  isGone(server: ServerId): Promise<boolean>;
  /** A room server has stopped sending heartbeats. */
  onServerLost(receive: (server: ServerId) => void): void;
}

/** Never rejects. */
export interface Tokens {
  verify(token: string): Promise<TokenVerdict>;
}

/** Reports of counts between gateways and room servers. */
export interface CountsBus {
  publishReport(report: CountsReport): void;
  onReport(receive: (report: CountsReport) => void): void;
}

/** Sanctions between the gateways. */
export interface SanctionsBus {
  publishSanction(sanction: Sanction): void;
  onSanction(receive: (sanction: Sanction) => void): void;
  /**
   * The sanctions that the other gateways know, as many as one answer of each holds; one may appear several times.
   * Empty without an answer in time.
   */
  requestSanctions(): Promise<readonly Sanction[]>;
  onRequest(answer: () => readonly Sanction[]): void;
}

/** Reports of the document services. */
export interface StorageReports {
  onFull(receive: (full: FullStorage) => void): void;
  /** Only one of the gateways that call this receives a message. */
  onPeaks(receive: (peaks: StoragePeaks) => void): void;
}

/** A store in which sanctions outlive the gateways. Rejects while it does not answer or refuses. */
export interface SanctionStore {
  /** Number of lost connections. After a loss the store may have less than before, for example a replica that took over. */
  breaks(): number;
  load(): Promise<readonly Sanction[]>;
  /** Has no effect when a stored sanction supersedes this one. */
  save(sanction: Sanction): Promise<void>;
}

/** A store in which the gateways add up the usage of each day. Rejects while it is unreachable. */
export interface UsageStore {
  /** Adds a batch once, even if it is called several times. Batches come in the order of their numbers. */
  add(batch: UsageBatch): Promise<void>;
  /** Keeps each tenant's highest stored bytes of the day. Returns how many tenants have no space in the day. */
  raise(peaks: StoragePeaks): Promise<number>;
  /**
   * Adds a part of this gateway's sample to the sums of its moment, once, and keeps each tenant's highest sum of the day.
   * Returns how many tenants have no space.
   */
  sample(sample: ConnectionSample): Promise<number>;
  /** The tenants of a day, or only one of them. A tenant without usage is missing. */
  read(day: UsageDay, tenant: TenantId | undefined): Promise<ReadonlyMap<TenantId, StoredUsage>>;
}

/**
 * `gateways`: the number of gateways that answered completely. `silentGateways`: those that run and did not; none are named
 * while a gateway of an earlier release answers without its name.
 */
type AdminCommandOutcome = {
  readonly kicked: number;
  readonly members: readonly RoomMember[];
  readonly gateways: number;
  readonly silentGateways: readonly string[];
};

/** Commands to all gateways, this one included. */
export interface AdminCommands {
  issueCommand(order: AdminCommand): Promise<AdminCommandOutcome>;
  onCommand(carryOut: (order: AdminCommand) => Pick<AdminReply, "kicked" | "members">): void;
}

/**
 * `gateways`: those that answered a question, this gateway included. `servers`: room servers with a recent heartbeat at that
 * moment, by name. `serversLost`: servers that stopped in the last minutes without handing over their rooms, the newest first.
 */
export type FleetSight = {
  readonly gateways: readonly GatewayReport[];
  readonly servers: readonly ServerHeartbeat[];
  readonly serversLost: readonly LostRoomServer[];
};

/** Gateways and room servers, for operators. */
export interface FleetControl {
  /** Room servers with a recent heartbeat now. */
  servers(): readonly ServerHeartbeat[];
  /** All parts are of one moment. Without NATS, room servers go missing before an earlier answer of this gateway expires. */
  look(): Promise<FleetSight>;
  /** The placement process that leads. Undefined: none, or unknown. */
  leader(): Promise<string | undefined>;
  /** Undefined: no gateway with that name answers. */
  drainGateway(gateway: string): Promise<GatewayReport | undefined>;
  /** Commands the server to hand over all its rooms and to accept none. It answers at once. Undefined: no answer. */
  drainServer(server: ServerId): Promise<ServerCommandReply | undefined>;
}

/** Open rooms, as their owners and placement describe them. */
export interface OpenRooms {
  /** The answers of the room servers that answer in time. */
  list(question: RoomListRequest): Promise<readonly RoomListReply[]>;
  describe(room: RoomKey): Promise<RoomDescription>;
  move(room: RoomKey, to: ServerId): Promise<MoveOutcome>;
}

/** `account` is undefined when the room has no owner. */
export type RoomDescription = {
  readonly account: RoomReport | undefined;
  readonly planned: PlannedRoom | undefined;
  readonly pin: RoomPin | undefined;
};

/** Recent operations events. */
export interface RecentEvents {
  /** Resolves when the stored events have been read. */
  read(): Promise<RecentEventLog>;
}

/**
 * How a client reads its data. `behind`: much data is unread, so only data that must not be lost may be added. `stuck`:
 * the client reads nothing. `cut`: more was unread than a connection may have, so it was cut without a close code.
 */
export type ReadProgress = "keeping-up" | "behind" | "stuck" | "cut";

/** Receives the events of the sockets. */
export interface Clients {
  /** `address` is undefined when it is not counted. */
  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void;
  /** `bytes` are one message, and valid during the call only. */
  receiveFrame(connection: ConnectionId, bytes: Uint8Array): void;
  /** Called when the state changes. */
  receiveReadProgress(connection: ConnectionId, progress: ReadProgress): void;
  receiveDisconnection(connection: ConnectionId): void;
}

/** Traces single edits through this gateway. */
export interface EditHops {
  /** From a client, or over HTTP. */
  received(room: RoomKey, edit: SubmittedEdit): void;
  forwarded(room: RoomKey, message: ToOwner): void;
  answered(room: RoomKey, answer: OwnerReply): void;
  /** The log is known to have them. */
  committed(room: RoomKey, batch: CommittedBatch): void;
  /** Calls `deliver`, which sends the edits to the members. */
  delivering(room: RoomKey, batch: CommittedBatch, deliver: () => void): void;
}

/** The load of this process over the last moments. */
export type Pressure = {
  /** Delay of the event loop's timers. */
  readonly delayMs: number;
  /** Bytes that clients have not read yet, of all clients together. */
  readonly outboundBytes: number;
  /** Round trip of a message over NATS. */
  readonly natsLagMs: number;
};

/** Measures the load of this process. */
export interface Pressures {
  /** Since the previous call. */
  measure(): Pressure;
  /** Age of a connection's oldest unread data: the p99 of all connections. */
  outboundP99Ms(): number;
}
