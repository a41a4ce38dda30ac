/** What a room on a connection hears, and what it answers with. */

import type { ClientKey, Millis, Position } from "../../shared/ids.ts";
import type { ClientFrame, Limits, ServerFrame, TentativeEdit } from "../../shared/wire/frames.ts";
import type { FramePace } from "../connection/frame-pace.ts";
import type { EditName, KeptChange, KeptRoom } from "../keeping/edit-store.ts";
import type { RoomEdit } from "./inbox.ts";
import type { Pace } from "./pace.ts";
import type { SnapshotAnswer } from "../ports.ts";
import type { Problem, Refusal } from "./problems.ts";

export type RoomFrame = Exclude<
  ServerFrame,
  { type: "welcome" | "pong" | "error" | "going-away" | "degraded" | "renewed" | "retry-later" }
>;

/** An open connection: what the server asks for, and the paces of edits and of presence that its rooms share. */
export type Line = { readonly limits: Limits; readonly pace: Pace; readonly presencePace: FramePace };

/** `made`: by so many calls of the application. */
export type RestoredEdit = { readonly payload: Uint8Array; readonly made: number };

export type RoomInput =
  | { kind: "enter" }
  | { kind: "leave" }
  | ({ kind: "line-open" } & Line)
  | { kind: "line-lost"; heardAt: Millis }
  | { kind: "frame"; frame: RoomFrame }
  /** Goes out with the next input: what is made at once is sent together. */
  | { kind: "edit"; payload: Uint8Array }
  | { kind: "snapshot"; answer: SnapshotAnswer }
  /** What is kept on this device. */
  | { kind: "restored"; kept: KeptRoom }
  | { kind: "kept"; write: number }
  /** `write` undefined: the store could not be opened. */
  | { kind: "keep-failed"; write: number | undefined; cause: unknown }
  /** What the store had kept may be gone. */
  | { kind: "store-lost" }
  | { kind: "tick" };

export type RoomEffect =
  | { kind: "join"; clientKey: ClientKey; position: Position }
  | { kind: "send"; frame: ClientFrame }
  | { kind: "fetch-snapshot" }
  | { kind: "deliver"; edits: readonly RoomEdit[] }
  | { kind: "show-tentative"; edits: readonly TentativeEdit[] }
  /** Shown before, and given up: nobody else may have them. */
  | { kind: "unconfirmed"; edits: readonly TentativeEdit[] }
  | { kind: "load-snapshot"; position: Position; last?: EditName | undefined; payload: Uint8Array }
  /** The server's log has lost edits that this client had received. */
  | { kind: "log-rolled-back" }
  /** What was made here and is not acknowledged, as it was kept: to be shown again. */
  | { kind: "restored"; edits: readonly RestoredEdit[] }
  | { kind: "keep"; write: number; change: KeptChange }
  /** What is kept of the room is to be removed: it is deleted. */
  | { kind: "forget-room" }
  /** What is kept is not this page's to use. */
  | { kind: "close-store" }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "problem"; problem: Problem };
