/** The ports of a room server. `io/` implements each, and tests provide fakes. */

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { CountsReport } from "../shared/bus/counts-report.ts";
import type { LocalOwner, OwnerReply, OwnerAnnouncement } from "../shared/bus/envelope.ts";
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
 * A record to append after the room's last record. The last record is given by id and stream sequence, 0 for none. The
 * sequence alone is no proof, because a log that lost its end gives it to another record.
 */
export type OutgoingRecord = {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly expectedId: string | undefined;
  readonly expectedStreamSeq: number;
};

/** `fenced`: another owner's record is, or was, at the expected place. */
export type AppendOutcome = { kind: "appended"; streamSeq: number } | { kind: "fenced" };

/** The reason why an ownership ended before its append settled. Short, because a trace shows it as its error. */
export type ReleaseReason = "released" | "handed-over" | "fenced" | "failed" | "deleted" | "stopped";

export interface RoomLog {
  /**
   * Retries until the outcome is certain, without a time limit; one append at a time per room. Calls `settled` once,
   * never before this returns. Calls `refused` each time that the log refuses the record because its storage is full.
   * The returned function abandons the append with a reason, and `settled` is then not called.
   */
  append(
    room: RoomKey,
    record: OutgoingRecord,
    settled: (outcome: AppendOutcome) => void,
    refused?: () => void,
  ): (why: ReleaseReason) => void;
  /** The room's last record, from the stream's leader. Throws without an answer. */
  readLast(room: RoomKey): Promise<LastRecord | undefined>;
  /** Whether the stream's leader has no record of the room after that one. Throws without an answer. */
  endsAt(room: RoomKey, streamSeq: number): Promise<boolean>;
  /**
   * The owners' records of the room in `after < streamSeq <= through` that still exist, in order. `through`: the log
   * has that record, or a later one. Throws without an answer, or if the log returns fewer records.
   */
  read(room: RoomKey, after: number, through: number): AsyncIterable<DecodedRecord>;
  /**
   * The next records of the room's partition get stream sequences above `past`. Resolves with 0, or with the number of
   * missing sequences if these are too many. Throws without an answer.
   */
  advance(room: RoomKey, past: number): Promise<number>;
}

export interface Subscription {
  isOpen(): boolean;
  /** Accepts no more messages. Resolves once all arrived messages were received. */
  close(): Promise<void>;
}

/** Receives gateways' messages to a room's owner, in order of arrival. */
export interface Receiver extends LocalOwner {
  /** The question of a gateway: which server owns the room's presence? All other presence messages arrive in batches. */
  receivePresence(message: PresenceToOwner): void;
}

export interface RoomInbox {
  /** Resolves once gateways' messages to the room's owner reach this server. Throws if NATS does not answer. */
  subscribe(room: RoomKey, receiver: Receiver): Promise<Subscription>;
}

/** Sends without confirmation: gateways request lost messages again. */
export interface Gateways {
  answer(gateway: GatewayId, room: RoomKey, answer: OwnerReply): void;
  broadcast(room: RoomKey, message: OwnerAnnouncement): void;
}

/**
 * Presence between this server and gateways, on a separate connection. Sends without confirmation. Nothing is buffered
 * during a connection loss.
 */
export interface PresenceBus {
  sendBatch(gateway: GatewayId, batch: Omit<PresenceDown, "kind">): void;
  onBatch(receive: (batch: PresenceUp) => void): void;
  onHeartbeat(receive: (gateway: GatewayId) => void): void;
  /**
   * While the connection is down, silence of a gateway proves nothing. `losses`: number of connection losses, each of
   * which may have lost messages.
   */
  connectionStatus(): { readonly isUp: boolean; readonly losses: number };
}

export type KnownCheckpoint = Checkpoint | "deleted" | undefined;
export interface CheckpointReader {
  /** The newest checkpoint of the document service. Throws when the bucket does not answer. */
  newest(room: RoomKey): Promise<KnownCheckpoint>;
}

/** Hints for the search for an owner. The log decides. */
export interface RoomEntries {
  find(room: RoomKey): Promise<RoomEntry | undefined>;
  /** Writes this server as the owner, unless a later epoch is stored. */
  announce(room: RoomKey, epoch: Epoch): Promise<void>;
  /** Removes the entry if it still names this server, and no later claim of it. */
  withdraw(room: RoomKey, epoch: Epoch): Promise<void>;
  /** Removes the entry of any owner: the room is deleted. */
  forget(room: RoomKey): Promise<void>;
}

export interface Peers {
  publishHeartbeat(heartbeat: ServerHeartbeat): void;
  onHeartbeat(receive: (heartbeat: ServerHeartbeat) => void): void;
  /** Another process found that no server is subscribed to that server's subject. */
  onUnreached(receive: (server: ServerId) => void): void;
  /** Whether NATS reports that no server is subscribed there. A missing answer proves nothing. */
  isGone(server: ServerId): Promise<boolean>;
}

/** Counts that the gateways add up over all room servers. */
export interface Counts {
  publishReport(report: CountsReport): void;
}

export interface Epochs {
  /** A new epoch: above `known`, and with high probability above any earlier one that the log may have lost. */
  after(known: Epoch): Epoch;
}

/** Republished records and owners' announcements, as every gateway of the room receives them. */
export interface FanOut {
  /** Resolves once no later announcement of the room is missed. Throws if NATS does not answer. */
  subscribe(room: RoomKey, receive: (announcement: DecodedRecord | Beacon | DeletedRecord) => void): Promise<Subscription>;
  /** The connection was lost and is back. Announcements in between are lost. Calls every subscriber. */
  onGap(receive: () => void): void;
}

export type Beacon = { readonly kind: "beacon"; readonly head: Seq };

/** The room servers that can receive a room. Undefined or false: no answer in time, or a refusal. */
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

/** Proves to any later owner of the room that a room server recently received an edit from its author. */
export interface Seal {
  sealOf(room: RoomKey, edit: Omit<TentativeEdit, "mac" | "epoch">): Uint8Array;
  isGenuine(room: RoomKey, edit: TentativeEdit): boolean;
}

/** Reports to webhooks that a room is in use, or no longer in use. */
export interface RoomActivityReports {
  /** The first participant has joined, or the last has left. A new owner reports the first participant again. */
  report(room: RoomKey, activity: "room.occupied" | "room.vacated"): void;
}
