/** What the gateway needs from the world, in its own words. `io/` implements each; tests fake each. */

import type { Activity } from "../shared/bus/activity.ts";
import type { BoardName, BoardWatch } from "../shared/bus/board-messages.ts";
import type { Order, OrderAnswer, RoomMember, Sanction } from "../shared/bus/admin-messages.ts";
import type { CountsReport } from "../shared/bus/counts-report.ts";
import type { Answer, SubmittedEdit, ToOwner } from "../shared/bus/envelope.ts";
import type { GatewayAccount, RoomListAnswer, RoomListQuestion } from "../shared/bus/fleet-messages.ts";
import type {
  ClaimReply,
  ClaimRequest,
  LocateReply,
  LocateRequest,
  OrderReply,
  PlannedRoom,
  RoomPin,
  ServerHeartbeat,
} from "../shared/bus/placement-messages.ts";
import type { RoomAccount } from "../shared/bus/room-account.ts";
import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { MoveOutcome } from "../shared/move-outcome.ts";
import type { CloseName } from "../shared/wire/close-codes.ts";
import type { Channel } from "../shared/wire/frames.ts";
import type { ClientAddress } from "../shared/client-address.ts";
import type { TokenVerdict } from "./sessions/identity.ts";
import type { Pressure } from "./limits/shed.ts";
import type { CommittedBatch } from "./rooms/in-order.ts";
import type { EventsKept } from "./operations/events-kept.ts";
import type { LostServer } from "./operations/servers-lost.ts";

declare const connection: unique symbol;
/** One socket, for as long as it is open. */
export type ConnectionId = number & { readonly [connection]: true };

/** The clients' sockets. Frames to one connection keep their order, whether sent or published. */
export interface Sockets {
  send(to: ConnectionId, frame: Uint8Array): void;
  /** To every listener of the channel but one. */
  publish(channel: Channel, frame: Uint8Array, except: ConnectionId | undefined): void;
  listen(connection: ConnectionId, channel: Channel): void;
  unlisten(connection: ConnectionId, channel: Channel): void;
  close(connection: ConnectionId, close: CloseName): void;
}

/** What many of them listen to, each by its name. */
export interface Topics {
  /** `except`: who knows it already. */
  publishTo(topic: string, frame: Uint8Array, except?: ConnectionId): void;
  listenTo(connection: ConnectionId, topic: string): void;
  unlistenTo(connection: ConnectionId, topic: string): void;
}

/** The leaderboards, heard and told over the bus. All of it is lost while the line is down. */
export interface BoardBus {
  /** Their news of the room are heard from now on. */
  follow(room: RoomKey): void;
  unfollow(room: RoomKey): void;
  watch(watch: BoardWatch): void;
  /** So many as one message holds, at most. */
  tellNames(names: readonly BoardName[]): void;
  /** How many are heard of. */
  leaderboards(): number;
}

/** `known`: told before under the same id. `full`: what was told is not counted fast enough. */
export type Told = "stored" | "known" | "full" | "unavailable";

/** Where activities that are worth points are kept until they are counted. */
export interface Activities {
  /** Counts once, told however often under the same id. `unavailable`: it may be stored all the same, tell it again. */
  tell(room: RoomKey, activity: Activity, id: string): Promise<Told>;
}

/** The rooms' owners, heard and asked over the bus. What comes from them goes to `Backbone`. */
export interface Rooms {
  /** Resolves once nothing said in the room from now on is missed. Rejects when the line is lost: `backboneFound` follows. */
  follow(room: RoomKey): Promise<void>;
  unfollow(room: RoomKey): void;
  /** To whoever owns the room; lost while the line is down. */
  tell(room: RoomKey, message: Uint8Array): void;
}

/** The same for presence. */
export interface PresenceRooms extends Rooms {
  /** To every room server, which else takes this gateway's members for gone. */
  sayAlive(): void;
}

/** What the bus tells the gateway. */
export interface Backbone {
  receiveFromOwner(room: RoomKey, bytes: Uint8Array): void;
  receiveAnswer(room: RoomKey, bytes: Uint8Array): void;
  receiveNoResponders(room: RoomKey): void;
  receiveBackboneLost(): void;
  /** Every followed room is heard again; what was said meanwhile is lost. */
  receiveBackboneFound(): void;
}

/** Who owns a room. Undefined: no answer in time. */
export interface Placement {
  locate(request: LocateRequest): Promise<LocateReply | undefined>;
  claim(server: ServerId, request: ClaimRequest): Promise<ClaimReply | undefined>;
  /** Room servers heard of lately, the best for the room first; for when placement does not answer. */
  candidates(room: RoomKey): readonly ServerId[];
  /** Whether NATS says that nobody listens where this server should. Then the room servers are told: whoever has copies of its rooms takes them. */
  isGone(server: ServerId): Promise<boolean>;
  /** A room server has fallen silent. */
  onServerLost(receive: (server: ServerId) => void): void;
}

export interface Tokens {
  verify(token: string): Promise<TokenVerdict>;
}

/** What gateways and room servers tell each other of their counts. */
export interface CountsLine {
  tell(report: CountsReport): void;
  onReport(receive: (report: CountsReport) => void): void;
}

/** Sanctions on their way between the gateways. */
export interface SanctionsLine {
  tell(sanction: Sanction): void;
  onTold(receive: (sanction: Sanction) => void): void;
  /** What the other gateways know, of each as much as one answer holds, so that one may come several times; empty where there is none, or no answer in time. */
  ask(): Promise<readonly Sanction[]>;
  onAsked(answer: () => readonly Sanction[]): void;
}

/** Where sanctions outlive the gateways. Rejects while it is away. */
export interface SanctionStore {
  load(): Promise<readonly Sanction[]>;
  /** Changes nothing where one of the same is kept that supersedes it. */
  save(sanction: Sanction): Promise<void>;
}

/** `gateways`: how many have answered, and to the end. */
export type OrderOutcome = { readonly kicked: number; readonly members: readonly RoomMember[]; readonly gateways: number };

/** To all gateways, this one among them. */
export interface Orders {
  issue(order: Order): Promise<OrderOutcome>;
  onOrder(carryOut: (order: Order) => OrderAnswer): void;
}

/** Gateways and room servers, as the people who run them ask for. */
export interface Fleet {
  /** Room servers heard lately, by name. */
  servers(): readonly ServerHeartbeat[];
  /** Those that fell silent in the last minutes and had not let their rooms go, the newest first. */
  serversLost(): readonly LostServer[];
  /** This one among them. */
  gateways(): Promise<readonly GatewayAccount[]>;
  /** Which placement process leads. Undefined: none, or it cannot be read. */
  leader(): Promise<string | undefined>;
  /** Undefined: no gateway of that name answers. */
  drainGateway(gateway: string): Promise<GatewayAccount | undefined>;
  /** It is told to hand all its rooms over and to take none; answered at once. Undefined: it does not answer. */
  drainServer(server: ServerId): Promise<OrderReply | undefined>;
}

/** Open rooms, as their owners and placement know them. */
export interface OpenRooms {
  /** What each room server answers that does in time. */
  list(question: RoomListQuestion): Promise<readonly RoomListAnswer[]>;
  describe(room: RoomKey): Promise<RoomDescription>;
  move(room: RoomKey, to: ServerId): Promise<MoveOutcome>;
}

/** `account`: undefined where nobody owns the room. */
export type RoomDescription = {
  readonly account: RoomAccount | undefined;
  readonly planned: PlannedRoom | undefined;
  readonly pin: RoomPin | undefined;
};

/** What operations were told of lately. */
export interface RecentEvents {
  /** Resolves once those are known that were kept when it was first asked. */
  read(): Promise<EventsKept>;
}

/** How a client takes what it is sent. `behind`: so much waits for it that only what must not be lost may be added. `stuck`: it takes nothing. */
export type Pace = "keeping-up" | "behind" | "stuck";

/** What the sockets tell the gateway. */
export interface Clients {
  /** Undefined: an address that is not counted. */
  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void;
  /** `bytes` are lent for the call. */
  receiveFrame(connection: ConnectionId, bytes: Uint8Array): void;
  /** Told when it changes. */
  receivePace(connection: ConnectionId, pace: Pace): void;
  receiveDisconnection(connection: ConnectionId): void;
}

/** Follows edits through this gateway, for whoever looks at single ones. */
export interface EditHops {
  /** From a client, or over HTTP. */
  taken(room: RoomKey, edit: SubmittedEdit): void;
  told(room: RoomKey, message: ToOwner): void;
  answered(room: RoomKey, answer: Answer): void;
  /** It is known that the log has them. */
  committed(room: RoomKey, batch: CommittedBatch): void;
  /** `deliver`, which it calls, gives them to the members. */
  delivering(room: RoomKey, batch: CommittedBatch, deliver: () => void): void;
}

/** What weighs on this process. */
export interface Pressures {
  /** Since the last time. */
  measure(): Pressure;
  /** For how long the oldest has waited that a connection has not taken: the p99 of all connections. */
  outboundP99Ms(): number;
}
