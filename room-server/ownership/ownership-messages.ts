/** Inputs and effects of a room's ownership and of its claim. */

import type { ToOwner, FromGateway } from "../../shared/bus/envelope.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { OwnersRecord } from "../../shared/bus/record.ts";
import type { Epoch, Seq, ServerId } from "../../shared/ids.ts";
import type { ReleaseReason, AppendOutcome, KnownCheckpoint, LastRecord, OutgoingRecord } from "../ports.ts";
import type { Hole } from "../rooms/loading.ts";
import type { OwnedRoomStart } from "../rooms/owned-room.ts";
import type { OwnedRoomEffect } from "../rooms/room-messages.ts";

export type OwnershipInput =
  | ClaimInput
  | { kind: "message"; message: ToOwner; bytes: number }
  /** A request to check whether this server is still the owner. `above`: the requester knows an owner in that epoch. */
  | { kind: "ownership-questioned"; above?: Epoch | undefined }
  /** The connection to NATS is back: the log may have lost its end. */
  | { kind: "reconnected" }
  /** A member is in the room, with or without edits. */
  | { kind: "inhabited" }
  /** Sets the time for which edits are collected before they share a record. */
  | { kind: "gather"; everyMs: number }
  | { kind: "log-full" }
  /** The awaited result failed. */
  | { kind: "failed"; reason: string }
  | { kind: "release" }
  /** Another server is about to claim the room. */
  | { kind: "hand-over" }
  /** The other server claimed the room. */
  | { kind: "handed-over" }
  /** The other server may not have claimed the room. */
  | { kind: "keep" }
  | { kind: "unsubscribed" }
  | { kind: "log-end-checked"; isEnd: boolean };

export type OwnershipEffect =
  | Exclude<OwnedRoomEffect, { kind: "check-ownership" }>
  | ClaimEffect
  | { kind: "subscribe" }
  /** Whether the log has a record of the room after that one. */
  | { kind: "check-log-end"; streamSeq: number }
  /** The log confirmed that this server is still the owner. */
  | { kind: "confirmed"; epoch: Epoch }
  /** The log did not answer. */
  | { kind: "unconfirmed"; reason: string }
  | { kind: "unsubscribe" }
  /** Appends have stopped, so the other server may claim the room. */
  | { kind: "ready-to-hand-over"; end: LogEnd }
  /** `epoch`: undefined if it had not fenced the earlier owners. `wasClaim`: it ended before the room was loaded. */
  | { kind: "ended"; why: OwnershipEnd; reason: string; epoch: Epoch | undefined; wasClaim: boolean };

/** `fenced`: by a later owner that this one did not expect. */
export type OwnershipEnd = Exclude<ReleaseReason, "stopped">;

/** The start of a claim, its inputs, its effects and its outcome. */
export type ClaimBeginning =
  | { kind: "claim" }
  /** Waits for a handover. */
  | { kind: "expectation" }
  /** The owner is lost, and the replica contains its last record. */
  | { kind: "takeover"; from: ServerId };

export type ClaimInput =
  | { kind: "subscribed" }
  | { kind: "log-end-read"; last: LastRecord | undefined; checkpoint: KnownCheckpoint }
  /** `missing`: the number of sequences that the log would have to skip, if these are too many. 0: done. */
  | { kind: "log-advanced"; missing: number }
  | { kind: "append-settled"; outcome: AppendOutcome }
  | { kind: "log-read"; record: OwnersRecord }
  | { kind: "log-loaded" }
  | { kind: "checkpoint-read"; checkpoint: KnownCheckpoint }
  /** The expected room is handed over. */
  | { kind: "end-received"; end: LogEnd }
  /** Claim the room, whether it is handed over or not. */
  | { kind: "claimed" }
  | { kind: "tick" };

export type ClaimEffect =
  /** This server is subscribed to the room's edits, so the owner may stop. */
  | { kind: "expecting" }
  | { kind: "read-log-end" }
  /** The log's next records get stream sequences above `past`. */
  | { kind: "advance-log"; past: number }
  | { kind: "append"; record: OutgoingRecord; edits: 0 }
  /** The claim is won: no earlier owner can append. */
  | { kind: "fenced-others"; epoch: Epoch }
  /** Reads the room's records in `after < streamSeq <= through`. */
  | { kind: "load"; after: number; through: number }
  | { kind: "read-checkpoint" }
  | { kind: "log-hole"; hole: Hole }
  /** An earlier owner appended them below the room's checkpoint, after the log had lost its end. */
  | { kind: "edits-lost"; after: Seq; through: Seq };

/** The state of a claim after an input. */
export type ClaimStep =
  | { kind: "under-way"; effects: readonly ClaimEffect[] }
  | { kind: "won"; effects: readonly ClaimEffect[]; start: OwnedRoomStart }
  | { kind: "lost"; why: "fenced" | "failed" | "deleted"; reason: string; effects?: readonly ClaimEffect[] };

/** The outcome for the requesters. `wasOwner`: the room belonged to this server until now, so it may be claimed again. */
export type ClaimOutcome = { kind: "owned"; epoch: Epoch } | { kind: "deleted" } | { kind: "lost"; wasOwner: boolean; reason: string };

/** Holds messages from gateways during a claim, up to a limit. A message above the limit is dropped, and its gateway sends it again. */
export type HeldOptions = { readonly heldMessagesMax: number; readonly heldBytesMax: number };

export class HeldMessages {
  readonly #options: HeldOptions;
  readonly #messages: FromGateway[] = [];
  #bytes = 0;

  constructor(options: HeldOptions) {
    this.#options = options;
  }

  /** False when the message does not fit. */
  hold(message: FromGateway, bytes: number): boolean {
    if (this.#messages.length >= this.#options.heldMessagesMax || this.#bytes + bytes > this.#options.heldBytesMax) return false;
    this.#messages.push(message);
    this.#bytes += bytes;
    return true;
  }

  get all(): readonly FromGateway[] {
    return this.#messages;
  }
}
