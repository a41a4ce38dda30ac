/**
 * The deletion of one room, step by step. The room's last log record is the deletion; every step after it may fail, and
 * the next try, here or in another service, reaches the same end:
 *
 *   checkpoint "deleting" -> snapshot -> history -> log before that record -> no owner -> announced -> checkpoint "done"
 *
 * The invariant: each store records that the room is deleted before anything is removed from it, so that a late writer fails.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { type DeletedCheckpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { RoomLogEnd, StoredCheckpoint } from "../ports.ts";

/** The answer to `notify-owner`. `somebody`: a room server holds the room, or may hold it. */
type OwnerAnswer = "nobody" | "somebody";

export type DeletionInput =
  | { readonly kind: "begin"; readonly time: UnixMillis }
  | { readonly kind: "owner-answered"; readonly attempt: number; readonly answer: OwnerAnswer }
  | { readonly kind: "checkpoint-read"; readonly found: StoredCheckpoint }
  | { readonly kind: "checkpoint-written"; readonly write: LeaseWrite }
  | { readonly kind: "snapshot-removed" }
  | { readonly kind: "history-removed" }
  | { readonly kind: "log-end-read"; readonly end: RoomLogEnd }
  | { readonly kind: "log-trimmed" }
  | { readonly kind: "announced" }
  /** The last effect failed. */
  | { readonly kind: "failed" };

export type DeletionEffect =
  | { readonly kind: "notify-owner"; readonly attempt: number }
  | { readonly kind: "read-checkpoint" }
  | { readonly kind: "write-checkpoint"; readonly entry: DeletedCheckpoint; readonly revision: number }
  | { readonly kind: "remove-snapshot"; readonly object: string }
  | { readonly kind: "remove-history" }
  | { readonly kind: "read-log-end" }
  | { readonly kind: "trim-log"; readonly before: number }
  | { readonly kind: "announce" }
  | { readonly kind: "end"; readonly outcome: DeletionOutcome };
/** `owned`: a room server may still hold the room. `contended`: another service wrote the checkpoint at each try. */
export type DeletionOutcome = "wiped" | "owned" | "contended" | "failed";

/** The effect whose outcome the attempt waits for. */
type Step =
  | { readonly kind: "reading-checkpoint"; readonly tries: number }
  | { readonly kind: "fencing-checkpoint"; readonly tries: number; readonly object: string | undefined }
  | { readonly kind: "removing-snapshot" }
  | { readonly kind: "removing-history" }
  | { readonly kind: "reading-log-end" }
  | { readonly kind: "trimming-log" }
  | { readonly kind: "awaiting-owner"; readonly isRepeated: boolean }
  | { readonly kind: "announcing" }
  | { readonly kind: "reading-final-revision"; readonly tries: number }
  | { readonly kind: "marking-done"; readonly tries: number };

type Attempt = {
  readonly number: number;
  readonly time: UnixMillis;
  /** An earlier attempt finished; only records that came later are trimmed. */
  wasDone: boolean;
  /** Undefined: the owner has not answered yet. */
  ownerAnswer: OwnerAnswer | undefined;
  step: Step;
};

type State =
  | { readonly kind: "living" }
  /** `streamSeq`: of the deletion's record, where it was read. */
  | { readonly kind: "wiping"; readonly streamSeq: number | undefined; readonly attempt: Attempt | undefined }
  | { readonly kind: "wiped" };

/** Of each write of the checkpoint. Another service writes it only while it believes that this one is dead. */
const TRIES_MAX = 3;

export class Deletion {
  #state: State = { kind: "living" };
  #lastRecord = 0;
  #attempts = 0;

  get isDeleted(): boolean {
    return this.#state.kind !== "living";
  }

  /** Some data of the room may be left. */
  get isDue(): boolean {
    return this.#state.kind === "wiping";
  }

  get isDone(): boolean {
    return this.#state.kind === "wiped";
  }

  /** The record that the next service must read again until the deletion is done. */
  get uncoveredFrom(): number | undefined {
    return this.#state.kind === "wiping" ? this.#state.streamSeq : undefined;
  }

  /** A read of the log may return the record twice, and the log may contain two of them. */
  receiveRecord(streamSeq: number): void {
    if (streamSeq <= this.#lastRecord) return;
    this.#lastRecord = streamSeq;
    this.#state = { kind: "wiping", streamSeq, attempt: this.#attempt };
  }

  /** The room's checkpoint states that the room is deleted. */
  receiveEntry({ wiping }: DeletedCheckpoint): void {
    if (this.#state.kind !== "living") return;
    this.#state = wiping === true ? { kind: "wiping", streamSeq: undefined, attempt: undefined } : { kind: "wiped" };
  }

  receive(input: DeletionInput): DeletionEffect[] {
    if (input.kind === "begin") return this.#begin(input.time);
    const attempt = this.#attempt;
    if (attempt === undefined) return []; // An owner's late answer.
    if (input.kind === "owner-answered") {
      if (input.attempt !== attempt.number) return [];
      attempt.ownerAnswer = input.answer;
      return attempt.step.kind === "awaiting-owner" ? this.#announceOnceUnowned(attempt, attempt.step.isRepeated) : [];
    }
    return input.kind === "failed" ? this.#end("failed") : this.#receiveOutcome(attempt, input);
  }

  get #attempt(): Attempt | undefined {
    return this.#state.kind === "wiping" ? this.#state.attempt : undefined;
  }

  /** Notifies the owner at once, so that it stops showing the room as early as possible. */
  #begin(time: UnixMillis): DeletionEffect[] {
    assert(this.#state.kind === "wiping" && this.#attempt === undefined, "one attempt at a time removes what is left of a deleted room");
    this.#attempts += 1;
    const attempt: Attempt = {
      number: this.#attempts,
      time,
      wasDone: false,
      ownerAnswer: undefined,
      step: { kind: "reading-checkpoint", tries: 1 },
    };
    this.#state = { ...this.#state, attempt };
    return [{ kind: "notify-owner", attempt: attempt.number }, { kind: "read-checkpoint" }];
  }

  #receiveOutcome(attempt: Attempt, input: Exclude<DeletionInput, { kind: "begin" | "owner-answered" | "failed" }>): DeletionEffect[] {
    switch (input.kind) {
      case "checkpoint-read":
        return attempt.step.kind === "reading-final-revision"
          ? this.#markDone(attempt, attempt.step.tries, input.found)
          : this.#fenceCheckpoint(attempt, input.found);
      case "checkpoint-written":
        return this.#receiveWrite(attempt, input.write);
      case "snapshot-removed":
        return this.#next(attempt, { kind: "removing-history" }, { kind: "remove-history" });
      case "history-removed":
        return this.#next(attempt, { kind: "reading-log-end" }, { kind: "read-log-end" });
      case "log-end-read":
        return input.end.kind === "deleted"
          ? this.#next(attempt, { kind: "trimming-log" }, { kind: "trim-log", before: input.end.streamSeq })
          : this.#finishStores(attempt);
      case "log-trimmed":
        return this.#finishStores(attempt);
      case "announced":
        return this.#next(attempt, { kind: "reading-final-revision", tries: 1 }, { kind: "read-checkpoint" });
      default:
        return assertNever(input);
    }
  }

  /** Replaces the checkpoint by "deleting". A later write of a checkpoint then finds an unknown revision and is refused. */
  #fenceCheckpoint(attempt: Attempt, { checkpoint, revision }: StoredCheckpoint): DeletionEffect[] {
    assert(attempt.step.kind === "reading-checkpoint", "a checkpoint is fenced after it was read");
    if (isDeleted(checkpoint) && checkpoint.wiping !== true) {
      attempt.wasDone = true;
      return this.#next(attempt, { kind: "reading-log-end" }, { kind: "read-log-end" });
    }
    if (isDeleted(checkpoint)) return this.#removeSnapshot(attempt, checkpoint.snapshot);
    const object = checkpoint?.snapshot.object;
    const entry: DeletedCheckpoint = {
      deleted: true,
      time: attempt.time,
      wiping: true,
      ...(object === undefined ? {} : { snapshot: object }),
    };
    return this.#next(
      attempt,
      { kind: "fencing-checkpoint", tries: attempt.step.tries, object },
      { kind: "write-checkpoint", entry, revision },
    );
  }

  #markDone(attempt: Attempt, tries: number, { checkpoint, revision }: StoredCheckpoint): DeletionEffect[] {
    if (isDeleted(checkpoint) && checkpoint.wiping !== true) return this.#end("wiped"); // By another service.
    return this.#next(
      attempt,
      { kind: "marking-done", tries },
      { kind: "write-checkpoint", entry: { deleted: true, time: attempt.time }, revision },
    );
  }

  /** A refused write was superseded by another service, or its revision came from a stale read (ADR 36). */
  #receiveWrite(attempt: Attempt, write: LeaseWrite): DeletionEffect[] {
    const { step } = attempt;
    assert(
      step.kind === "fencing-checkpoint" || step.kind === "marking-done",
      "a deletion writes the checkpoint to fence it, and to mark that it is done",
    );
    if (write.kind === "written") return step.kind === "marking-done" ? this.#end("wiped") : this.#removeSnapshot(attempt, step.object);
    if (step.tries >= TRIES_MAX) return this.#end("contended");
    const kind = step.kind === "marking-done" ? "reading-final-revision" : "reading-checkpoint";
    return this.#next(attempt, { kind, tries: step.tries + 1 }, { kind: "read-checkpoint" });
  }

  #removeSnapshot(attempt: Attempt, object: string | undefined): DeletionEffect[] {
    return object === undefined
      ? this.#next(attempt, { kind: "removing-history" }, { kind: "remove-history" })
      : this.#next(attempt, { kind: "removing-snapshot" }, { kind: "remove-snapshot", object });
  }

  #finishStores(attempt: Attempt): DeletionEffect[] {
    return attempt.wasDone ? this.#end("wiped") : this.#announceOnceUnowned(attempt, false);
  }

  /** The owner may be slow to read its log. It is asked a second time before the attempt ends. */
  #announceOnceUnowned(attempt: Attempt, isRepeated: boolean): DeletionEffect[] {
    switch (attempt.ownerAnswer) {
      case undefined:
        attempt.step = { kind: "awaiting-owner", isRepeated };
        return [];
      case "nobody":
        return this.#next(attempt, { kind: "announcing" }, { kind: "announce" });
      case "somebody":
        if (isRepeated) return this.#end("owned");
        attempt.ownerAnswer = undefined;
        return this.#next(attempt, { kind: "awaiting-owner", isRepeated: true }, { kind: "notify-owner", attempt: attempt.number });
      default:
        return assertNever(attempt.ownerAnswer);
    }
  }

  #next(attempt: Attempt, step: Step, effect: DeletionEffect): DeletionEffect[] {
    attempt.step = step;
    return [effect];
  }

  #end(outcome: DeletionOutcome): DeletionEffect[] {
    assert(this.#state.kind === "wiping", "an attempt ends while something of the room may be left");
    this.#state = outcome === "wiped" ? { kind: "wiped" } : { ...this.#state, attempt: undefined };
    return [{ kind: "end", outcome }];
  }
}

/** `streamSeq`: the stream sequence of the record that deletes the room, if the log has it. */
type DeletionStep =
  | { readonly kind: "no-room" }
  /** Append the record that deletes the room. */
  | { readonly kind: "append"; readonly streamSeq: undefined }
  | { readonly kind: "deleted"; readonly streamSeq: number | undefined };

/** A room without records, checkpoint or deletion never existed. A deleted room is not deleted again. */
export function nextDeletionStep(room: { readonly isDeleted: boolean; readonly appliedThrough: number }, end: RoomLogEnd): DeletionStep {
  if (end.kind === "deleted") return { kind: "deleted", streamSeq: end.streamSeq };
  if (room.isDeleted) return { kind: "deleted", streamSeq: undefined };
  return end.kind === "empty" && room.appliedThrough === 0 ? { kind: "no-room" } : { kind: "append", streamSeq: undefined };
}
