/** The ports of a room server. `io/` implements each, and tests provide fakes. */

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { CountsReport } from "../shared/bus/counts-report.ts";
import type { OwnerReply, OwnerAnnouncement, ToOwner } from "../shared/bus/envelope.ts";
import type { PresenceDown, PresenceUp } from "../shared/bus/presence-batches.ts";
import type { PresenceToOwner } from "../shared/bus/presence-messages.ts";
import type {
  ClaimReply,
  ClaimRequest,
  ServerCommandReply,
  RoomEntry,
  ServerHeartbeat,
  ServerCommand,
} from "../shared/bus/placement-messages.ts";
import type { DeletedRecord, LogRecord, OwnersRecord } from "../shared/bus/record.ts";
import type { Epoch, GatewayId, RoomKey, Seq, ServerId } from "../shared/ids.ts";
import type { TentativeEdit } from "../shared/wire/frames.ts";

/** A record with its stream sequence. The reader owns the bytes. */
export type DecodedRecord<Record extends LogRecord = OwnersRecord> = { readonly record: Record; readonly streamSeq: number };
/** A room's last record: an owner's, or the deletion. */
export type LastRecord = DecodedRecord<LogRecord>;

/**
 * A record to append behind the room's last record, given by id and stream sequence; 0 for none. The sequence alone is
 * no proof: a log that lost its end gives it to another record.
 */
export type OutgoingRecord = {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly expectedId: string | undefined;
  readonly expectedStreamSeq: number;
};

/** `fenced`: another owner's record is at the expected place, or was. */
export type AppendOutcome = { kind: "appended"; streamSeq: number } | { kind: "fenced" };

/** Why an ownership ended before its append settled; short, because a trace shows it as its error. */
export type ReleaseReason = "released" | "handed-over" | "fenced" | "failed" | "deleted" | "stopped";

export interface RoomLog {
  /**
   * Retries until the outcome is certain, however long it takes; one append at a time per room. Calls `settled` once,
   * never before this returns. Calls `refused` each time that the log refuses the record because its storage is full.
   * The returned function abandons the append with a reason; then `settled` is not called.
   */
  append(
    room: RoomKey,
    record: OutgoingRecord,
    settled: (outcome: AppendOutcome) => void,
    refused?: () => void,
  ): (why: ReleaseReason) => void;
  /** The room's last record, from the stream's leader. Throws without an answer. */
  readLast(room: RoomKey): Promise<LastRecord | undefined>;
  /** Whether the stream's leader has no record of the room behind that one. Throws without an answer. */
  endsAt(room: RoomKey, streamSeq: number): Promise<boolean>;
  /**
   * The owners' records of the room in `after < streamSeq <= through` that still exist, in order. `through`: the log
   * has that record, or a later one. Throws without an answer, or if the log shows less.
   */
  read(room: RoomKey, after: number, through: number): AsyncIterable<DecodedRecord>;
  /**
   * The next records of the room's partition get stream sequences above `past`. Resolves with 0, or with how many numbers the
   * log lacks if these are too many. Throws without an answer.
   */
  advance(room: RoomKey, past: number): Promise<number>;
}

export interface Subscription {
  isOpen(): boolean;
  /** Accepts no more; resolves once all arrived messages were received. */
  close(): Promise<void>;
}

/** Receives gateways' messages to a room's owner, in order of arrival. */
export interface Receiver {
  /** The epoch in which this owner alone takes the room's edits. Undefined: it does not own the room, or hands it over. */
  readonly openEpoch: Epoch | undefined;
  receiveMessage(message: ToOwner, bytes: number): void;
  /** Who owns the room's presence? Everything else of presence arrives in batches. */
  receivePresence(message: PresenceToOwner): void;
}

export interface RoomInbox {
  /** Resolves once gateways' messages to the room's owner reach this server. Throws if NATS does not answer. */
  subscribe(room: RoomKey, receiver: Receiver): Promise<Subscription>;
}

/** Fire and forget: gateways ask again for what is lost. */
export interface Gateways {
  answer(gateway: GatewayId, room: RoomKey, answer: OwnerReply): void;
  broadcast(room: RoomKey, message: OwnerAnnouncement): void;
}

/**
 * Presence between this server and gateways, on a connection of its own. Fire and forget: nothing is buffered during a
 * connection loss.
 */
export interface PresenceBus {
  sendBatch(gateway: GatewayId, batch: Omit<PresenceDown, "kind">): void;
  onBatch(receive: (batch: PresenceUp) => void): void;
  onHeartbeat(receive: (gateway: GatewayId) => void): void;
  /**
   * While the connection is down a gateway's silence means nothing. `losses`: how often it went down, losing messages.
   */
  connectionStatus(): { readonly isUp: boolean; readonly losses: number };
}

export type KnownCheckpoint = Checkpoint | "deleted" | undefined;
export interface CheckpointReader {
  /** The newest checkpoint of the document service. Throws when the bucket does not answer. */
  newest(room: RoomKey): Promise<KnownCheckpoint>;
}

/** Hints for finding an owner; never the authority. */
export interface RoomEntries {
  find(room: RoomKey): Promise<RoomEntry | undefined>;
  /** Writes this server as the owner, unless a later epoch is stored. */
  announce(room: RoomKey, epoch: Epoch): Promise<void>;
  /** Removes the entry if it is still this server's. */
  withdraw(room: RoomKey): Promise<void>;
  /** Removes the entry of any owner: the room is deleted. */
  forget(room: RoomKey): Promise<void>;
}

export interface Peers {
  publishHeartbeat(heartbeat: ServerHeartbeat): void;
  onHeartbeat(receive: (heartbeat: ServerHeartbeat) => void): void;
  /** Somebody found that nothing listens at that server's address. */
  onUnreached(receive: (server: ServerId) => void): void;
  /** Whether NATS reports that nothing listens there. No answer proves nothing. */
  isGone(server: ServerId): Promise<boolean>;
}

/** Counts that the gateways add up over all room servers. */
export interface Counts {
  publishReport(report: CountsReport): void;
}

export interface Epochs {
  /**
   * A new epoch: above `known`, and above any earlier one that the log may have lost, as far as dates and chance allow.
   */
  after(known: Epoch): Epoch;
}

/** Republished records and owners' announcements, as every gateway of the room receives them. */
export interface FanOut {
  /** Resolves once no later announcement of the room is missed. Throws when NATS does not answer. */
  subscribe(room: RoomKey, receive: (announcement: DecodedRecord | Beacon | DeletedRecord) => void): Promise<Subscription>;
  /** The connection was lost and is back: announcements in between are lost. Calls every subscriber. */
  onGap(receive: () => void): void;
}

export type Beacon = { readonly kind: "beacon"; readonly head: Seq };

/** The room servers that a room can be handed to. Undefined or false: no answer in time, or a refusal. */
export interface OtherServers {
  /** Resolves once that server has a replica of the room. */
  follow(server: ServerId, room: RoomKey): Promise<boolean>;
  /** Resolves once that server is subscribed to the room's edits, so that its owner may stop. */
  expect(server: ServerId, room: RoomKey): Promise<boolean>;
  claim(server: ServerId, request: ClaimRequest): Promise<ClaimReply | undefined>;
  /** The server that should own the room, other than the suspects. */
  locate(room: RoomKey, suspects: readonly ServerId[]): Promise<ServerId | undefined>;
}

export interface ServerCommands {
  onOrder(answer: (order: ServerCommand) => Promise<ServerCommandReply>): void;
}

export interface Claims {
  onClaim(answer: (request: ClaimRequest) => Promise<ClaimReply>): void;
}

/** Proves, to any later owner of the room, that a room server received an edit from its author, not long ago. */
export interface Seal {
  sealOf(room: RoomKey, edit: Omit<TentativeEdit, "mac" | "epoch">): Uint8Array;
  isGenuine(room: RoomKey, edit: TentativeEdit): boolean;
}

/** Announces outside that a room is in use, or no longer. */
export interface RoomActivityReports {
  /** The first participant has joined, or the last has left. After a change of owner the first is found again. */
  report(room: RoomKey, activity: "room.occupied" | "room.vacated"): void;
}
