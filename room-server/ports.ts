/** What a room server needs from the world, in its own words. `io/` implements each; tests fake each. */

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { CountsReport } from "../shared/bus/counts-report.ts";
import type { Answer, SaidByOwner, ToOwner } from "../shared/bus/envelope.ts";
import type { PresenceAnswer, PresenceFromOwner, PresenceToOwner } from "../shared/bus/presence-messages.ts";
import type { ClaimReply, ClaimRequest, OrderReply, RoomEntry, ServerHeartbeat, ServerOrder } from "../shared/bus/placement-messages.ts";
import type { DeletedRecord, LogRecord, OwnersRecord } from "../shared/bus/record.ts";
import type { Epoch, GatewayId, RoomKey, Seq, ServerId } from "../shared/ids.ts";
import type { TentativeEdit } from "../shared/wire/frames.ts";

/** A record with its place in the stream. The bytes are the reader's own to keep. */
export type StoredRecord<Record extends LogRecord = OwnersRecord> = { readonly record: Record; readonly streamSeq: number };
/** A room's last record: an owner's, or that it is deleted. */
export type LastRecord = StoredRecord<LogRecord>;

/**
 * A record on its way into the log, behind the room's last, which has this id and this place in the stream; 0 for none.
 * The place alone is no proof: a log that has lost its end gives the same one to another record.
 */
export type OutgoingRecord = {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly expectedId: string | undefined;
  readonly expectedStreamSeq: number;
};

/** `fenced`: another's record stands where this one was to go; it is not, or no longer, the room's last. */
export type AppendOutcome = { kind: "appended"; streamSeq: number } | { kind: "fenced" };

/** How the ownership ended that no longer waits for its append: a few words in all, for they are told as a trace's error. */
export type GivenUp = "released" | "handed-over" | "fenced" | "failed" | "deleted" | "stopped";

export interface RoomLog {
  /**
   * Tries until the outcome is certain, however long it takes; one append at a time per room. `settled` is
   * called once, never before this returns, and not at all after the returned function gave it up. That is told why.
   */
  append(room: RoomKey, record: OutgoingRecord, settled: (outcome: AppendOutcome) => void): (why: GivenUp) => void;
  /** The room's last record, from the stream's leader. Throws when it does not answer. */
  readLast(room: RoomKey): Promise<LastRecord | undefined>;
  /** Whether the stream's leader has none of the room's records behind that one: what it holds is not read. Throws when it does not answer. */
  endsAt(room: RoomKey, streamSeq: number): Promise<boolean>;
  /**
   * The owners' records of the room in `after < streamSeq <= through` that still exist, in order. `through`: the log has
   * that record, or one behind it. Throws when the log does not answer, or does not show as much.
   */
  read(room: RoomKey, after: number, through: number): AsyncIterable<StoredRecord>;
}

export interface Subscription {
  isOpen(): boolean;
  /** Takes no more; resolves once all that had arrived was received. */
  close(): Promise<void>;
}

/** Takes what gateways say to a room's owner, in the order in which it comes. */
export interface Receiver {
  receiveMessage(message: ToOwner, bytes: number): void;
  receivePresence(message: PresenceToOwner): void;
}

export interface Inbox {
  /** Resolves once gateways' messages of the room reach this server. Throws when NATS does not answer. */
  subscribe(room: RoomKey, receiver: Receiver): Promise<Subscription>;
}

/** Fire and forget: what is lost is asked for again. */
export interface Gateways {
  answer(gateway: GatewayId, room: RoomKey, answer: Answer): void;
  broadcast(room: RoomKey, message: SaidByOwner): void;
}

/** Who is there and what they show, to gateways; what they say comes by the inbox. Fire and forget: nothing is kept for a line that is lost. */
export interface PresenceBus {
  broadcast(room: RoomKey, message: PresenceFromOwner): void;
  answer(gateway: GatewayId, room: RoomKey, answer: PresenceAnswer): void;
  onHeartbeat(receive: (gateway: GatewayId) => void): void;
  /** While it is not up a gateway's silence means nothing. `losses`: how often it went down so far, and what was said meanwhile with it. */
  line(): { readonly isUp: boolean; readonly losses: number };
}

export type KnownCheckpoint = Checkpoint | "deleted" | undefined;
export interface Checkpoints {
  /** What the document service wrote last. Throws when the bucket does not answer. */
  newest(room: RoomKey): Promise<KnownCheckpoint>;
}

/** Hints for those who look for an owner; never the authority. */
export interface RoomEntries {
  find(room: RoomKey): Promise<RoomEntry | undefined>;
  /** Writes this server as the owner, unless a later epoch stands there. */
  announce(room: RoomKey, epoch: Epoch): Promise<void>;
  /** Removes the entry if it is still this server's. */
  withdraw(room: RoomKey): Promise<void>;
  /** Removes it, whoever it names: the room is deleted. */
  forget(room: RoomKey): Promise<void>;
}

export interface Peers {
  sayAlive(heartbeat: ServerHeartbeat): void;
  onHeartbeat(receive: (heartbeat: ServerHeartbeat) => void): void;
  /** Somebody finds that nobody listens where this server should. */
  onUnreached(receive: (server: ServerId) => void): void;
  /** Whether NATS says that nobody listens there. Silence says nothing. */
  isGone(server: ServerId): Promise<boolean>;
}

/** What the gateways sum up over all room servers. */
export interface Counts {
  tell(report: CountsReport): void;
}

export interface Epochs {
  /** For a new epoch: above `known`, and above any that there was, even if the log knows of it no longer, as far as dates and chance can see to it. */
  after(known: Epoch): Epoch;
}

/** What the log republishes and owners say, as every gateway of the room hears it. */
export interface FanOut {
  /** Resolves once nothing said in the room from now on is missed. Throws when NATS does not answer. */
  subscribe(room: RoomKey, receive: (heard: StoredRecord | Beacon | DeletedRecord) => void): Promise<Subscription>;
  /** The line was lost and found: what was said meanwhile is lost. Everybody who asks is told. */
  onGap(receive: () => void): void;
}

export type Beacon = { readonly kind: "beacon"; readonly head: Seq };

/** The room servers that a room can be handed to. Undefined or false: no answer in time, or a refusal. */
export interface OtherServers {
  /** Resolves once that server has a warm copy of the room. */
  follow(server: ServerId, room: RoomKey): Promise<boolean>;
  /** Resolves once that server hears the room's edits, so that its owner may stop. */
  expect(server: ServerId, room: RoomKey): Promise<boolean>;
  claim(server: ServerId, request: ClaimRequest): Promise<ClaimReply | undefined>;
  /** Who should own the room, if not these. */
  locate(room: RoomKey, suspects: readonly ServerId[]): Promise<ServerId | undefined>;
}

export interface Orders {
  onOrder(answer: (order: ServerOrder) => Promise<OrderReply>): void;
}

export interface Claims {
  onClaim(answer: (request: ClaimRequest) => Promise<ClaimReply>): void;
}

/** Proves that a room server saw an author send an edit, to whichever room server owns the room later. */
export interface Seal {
  sealOf(room: RoomKey, edit: Omit<TentativeEdit, "mac" | "epoch">): Uint8Array;
  isGenuine(room: RoomKey, edit: TentativeEdit): boolean;
}

/** Who wants to hear outside that a room is in use, or is no more. */
export interface Activity {
  /** The first participant is there, or the last has left. After a change of owner the first is found again. */
  tell(room: RoomKey, activity: "room.occupied" | "room.vacated"): void;
}
