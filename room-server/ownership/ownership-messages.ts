/** What the ownership of a room is told, and what it wants done: what the claim and the room want, and what ends both. */

import type { ToOwner } from "../../shared/bus/envelope.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { Epoch } from "../../shared/ids.ts";
import type { ClaimEffect, ClaimInput } from "./claim-messages.ts";
import type { GivenUp } from "../ports.ts";
import type { RoomEffect } from "../rooms/room-messages.ts";

export type OwnershipInput =
  | ClaimInput
  | { kind: "message"; message: ToOwner; bytes: number }
  /** Somebody asks whether it is still the owner. `above`: it has heard of one in that epoch. */
  | { kind: "doubted"; above?: Epoch | undefined }
  /** The line to NATS was lost, and is back: the log may have lost its end. */
  | { kind: "line-back" }
  /** Somebody is in the room, whether there are edits or not. */
  | { kind: "inhabited" }
  /** Its edits gather for so long before they share a record. */
  | { kind: "gather"; everyMs: number }
  /** What it waits for failed. */
  | { kind: "failed"; reason: string }
  | { kind: "release" }
  /** Another server is about to claim the room. */
  | { kind: "hand-over" }
  /** It has. */
  | { kind: "handed-over" }
  /** It may not have. */
  | { kind: "keep" }
  | { kind: "unsubscribed" }
  | { kind: "looked-behind"; isEnd: boolean };

export type OwnershipEffect =
  | Exclude<RoomEffect, { kind: "doubt" }>
  | ClaimEffect
  | { kind: "subscribe" }
  /** Whether the log has anything of the room behind that. */
  | { kind: "look-behind"; streamSeq: number }
  /** The log was asked: this server is the owner still. */
  | { kind: "confirmed"; epoch: Epoch }
  /** The log could not be asked. */
  | { kind: "unconfirmed"; reason: string }
  | { kind: "unsubscribe" }
  /** The log stands still: the other may claim. */
  | { kind: "ready-to-hand-over"; end: LogEnd }
  /** `wasOwner`: it had fenced all before it. `wasClaim`: it never had the room whole. */
  | { kind: "ended"; why: End; reason: string; wasOwner: boolean; wasClaim: boolean };

/** `fenced`: by a later owner that this one did not wait for. */
export type End = Exclude<GivenUp, "stopped">;
