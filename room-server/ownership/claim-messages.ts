/** How a claim begins, what it is told, what it wants done, and what it comes to. */

import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { OwnersRecord } from "../../shared/bus/record.ts";
import type { Epoch, ServerId } from "../../shared/ids.ts";
import type { Hole } from "../rooms/loading.ts";
import type { AppendOutcome, KnownCheckpoint, LastRecord, OutgoingRecord } from "../ports.ts";
import type { RoomStart } from "../rooms/room.ts";

export type ClaimBeginning =
  | { kind: "claim" }
  /** Waits to be handed the room. */
  | { kind: "expectation" }
  /** Its owner is gone, as the warm copy knew it. */
  | { kind: "takeover"; from: ServerId };

export type ClaimInput =
  | { kind: "subscribed" }
  | { kind: "log-end-read"; last: LastRecord | undefined; checkpoint: KnownCheckpoint }
  | { kind: "append-settled"; outcome: AppendOutcome }
  | { kind: "log-read"; record: OwnersRecord }
  | { kind: "log-read-whole" }
  | { kind: "checkpoint-read"; checkpoint: KnownCheckpoint }
  /** The room that was expected is handed over. */
  | { kind: "end-told"; end: LogEnd }
  /** It is to be claimed, handed over or not. */
  | { kind: "claimed" }
  | { kind: "tick" };

export type ClaimEffect =
  /** The room's edits are heard from now on: its owner may stop. */
  | { kind: "expecting" }
  | { kind: "read-log-end" }
  | { kind: "append"; record: OutgoingRecord; edits: 0 }
  /** The claim stands: nobody before can append any more. */
  | { kind: "fenced-others"; epoch: Epoch }
  /** Reads the room's records in `after < streamSeq <= through`. */
  | { kind: "load"; after: number; through: number }
  | { kind: "read-checkpoint" }
  | { kind: "log-hole"; hole: Hole };

/** What a claim has come to. */
export type ClaimStep =
  | { kind: "under-way"; effects: readonly ClaimEffect[] }
  | { kind: "won"; effects: readonly ClaimEffect[]; start: RoomStart }
  | { kind: "lost"; why: "fenced" | "failed" | "deleted"; reason: string };
