/**
 * A warm copy of a room that another server owns: who has written how far, and the newest edits, kept by what the log
 * republishes and repaired from the log itself. With it a takeover has nothing left to load.
 *
 * A copy is a guess that costs nothing when it is behind: whoever takes over with it fences at the log's end, and loads
 * whatever the copy lacks. But it holds one log and never parts of two: what it takes follows its last record by epoch
 * and seq, or stands behind that very record in the log. Where neither is so the log has lost its end, and the copy
 * begins anew. Rules REP1 to REP9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import { epochOf, type OwnersRecord, serverOf } from "../../shared/bus/record.ts";
import type { Epoch, Seq, ServerId } from "../../shared/ids.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import { Loading, type LoadingOptions, type Moment } from "../rooms/loading.ts";
import { endAt, type WarmCopy } from "./claim.ts";
import type { StoredRecord } from "../ports.ts";

export type ReplicaInput =
  /** From now on nothing said in the room is missed; what was said before may have been. */
  | { kind: "attached" }
  | { kind: "log-end-read"; last: StoredRecord | undefined; checkpoint: Checkpoint | undefined }
  | { kind: "log-read"; stored: StoredRecord }
  | { kind: "log-read-whole" }
  | { kind: "heard"; stored: StoredRecord }
  /** The owner tells where the room stands. */
  | { kind: "beacon"; head: Seq }
  /** What it waits for failed. */
  | { kind: "failed" }
  | { kind: "tick" };

export type ReplicaEffect =
  | { kind: "read-log-end" }
  /** Reads the room's records in `after < streamSeq <= through`. */
  | { kind: "load"; after: number; through: number }
  /** It has everything that the log had when it asked. */
  | { kind: "warm" };

type State =
  | { kind: "idle" }
  | { kind: "reading" }
  /** `unfound`: the copy's own last record, which the log is to show first. */
  | { kind: "loading"; through: number; unfound: string | undefined }
  | { kind: "following" }
  /** Tries again at the next tick. */
  | { kind: "failed" };

export class Replica {
  readonly #options: LoadingOptions;
  readonly #budget: BacklogBudget;
  #state: State = { kind: "idle" };
  #loading: Loading | undefined;
  #last = NOTHING;
  /** The newest record heard of; what lies between is to be read. */
  #heardOf = 0;
  /** Something was missed while the log was read. */
  #missed = false;

  constructor(options: LoadingOptions, budget: BacklogBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get isWarm(): boolean {
    return this.#state.kind === "following";
  }

  get hasFailed(): boolean {
    return this.#state.kind === "failed";
  }

  /** Who wrote the newest record here, if any is. */
  get writer(): ServerId | undefined {
    return this.#last.id === "" ? undefined : serverOf(this.#last);
  }

  /** What there is of it, for a takeover. Of no use to this object any more. */
  take(): WarmCopy | undefined {
    const [loading, isProven] = [this.#loading, this.isWarm];
    this.#loading = undefined;
    this.#state = { kind: "idle" };
    if (loading === undefined) return undefined;
    if (loading.isWhole && this.#last.streamSeq > 0) return { loading, last: this.#last, isProven };
    loading.clear();
    return undefined;
  }

  receive(input: ReplicaInput, moment: Moment): ReplicaEffect[] {
    switch (input.kind) {
      case "attached":
        return this.#lookAtEnd();
      case "log-end-read":
        return this.#state.kind === "reading" ? this.#receiveEnd(input.last, input.checkpoint, moment) : [];
      case "log-read":
        if (this.#state.kind === "loading") this.#receiveRead(this.#state, input.stored, moment);
        return [];
      case "log-read-whole":
        return this.#state.kind === "loading" ? this.#receiveWhole(this.#state) : [];
      case "heard":
        return this.#receiveHeard(input.stored, moment);
      case "beacon":
        return this.#state.kind === "following" && input.head > (this.#loading?.head ?? 0) ? this.#lookAtEnd() : [];
      case "failed":
        this.#state = { kind: "failed" };
        return [];
      case "tick":
        this.#loading?.expire(moment.now);
        return this.#state.kind === "failed" ? this.#lookAtEnd() : [];
      default:
        return assertNever(input);
    }
  }

  #lookAtEnd(): ReplicaEffect[] {
    if (this.#state.kind === "reading" || this.#state.kind === "loading") {
      this.#missed = true;
      return [];
    }
    this.#state = { kind: "reading" };
    this.#heardOf = 0; // What was heard of before, the log has or has lost.
    return [{ kind: "read-log-end" }];
  }

  #receiveEnd(last: StoredRecord | undefined, checkpoint: Checkpoint | undefined, moment: Moment): ReplicaEffect[] {
    const end = last?.streamSeq ?? 0;
    // Where the log no longer has what the copy holds, and where the copy has a hole, it begins anew.
    if (this.#loading?.isWhole !== true || this.#isOff(last)) this.#begin(checkpoint, moment);
    if (last !== undefined && end === this.#last.streamSeq) this.#last = endAt(last);
    this.#heardOf = Math.max(this.#heardOf, end);
    return this.#loadOrFollow();
  }

  #begin(checkpoint: Checkpoint | undefined, moment: Moment): void {
    this.#loading?.clear();
    this.#loading = new Loading(checkpoint, this.#options, this.#budget, moment.now);
    this.#last =
      checkpoint === undefined ? NOTHING : { id: "", streamSeq: checkpoint.streamSeq, epoch: checkpoint.epoch, head: checkpoint.seq };
  }

  #isOff(last: StoredRecord | undefined): boolean {
    const end = last?.streamSeq ?? 0;
    return this.#last.streamSeq > end || (this.#last.streamSeq === end && this.#last.id !== last?.record.id);
  }

  #receiveRead(state: State & { kind: "loading" }, stored: StoredRecord, moment: Moment): void {
    if (state.unfound === undefined) return this.#add(stored, moment);
    if (state.unfound === stored.record.id) state.unfound = undefined;
  }

  #receiveWhole({ through, unfound }: State & { kind: "loading" }): ReplicaEffect[] {
    if (unfound !== undefined) this.#forget();
    else if (this.#loading?.isWhole === true && this.#last.streamSeq >= through) return this.#loadOrFollow();
    this.#state = { kind: "failed" }; // The log was trimmed meanwhile, or has lost its end.
    return [];
  }

  #forget(): void {
    this.#loading?.clear();
    this.#loading = undefined;
    this.#last = NOTHING;
  }

  #loadOrFollow(): ReplicaEffect[] {
    if (this.#heardOf > this.#last.streamSeq) {
      const unfound = this.#last.id === "" ? undefined : this.#last.id;
      this.#state = { kind: "loading", through: this.#heardOf, unfound };
      return [{ kind: "load", after: unfound === undefined ? this.#last.streamSeq : this.#last.streamSeq - 1, through: this.#heardOf }];
    }
    this.#state = { kind: "following" };
    if (!this.#missed) return [{ kind: "warm" }];
    this.#missed = false;
    return this.#lookAtEnd();
  }

  #receiveHeard(stored: StoredRecord, moment: Moment): ReplicaEffect[] {
    this.#heardOf = Math.max(this.#heardOf, stored.streamSeq);
    if (this.#state.kind !== "following" || this.#loading === undefined) return [];
    if (stored.streamSeq <= this.#last.streamSeq) {
      const isInItsPlace = stored.streamSeq === this.#last.streamSeq && stored.record.id !== this.#last.id;
      if (!isInItsPlace && epochOf(stored.record) <= this.#last.epoch) return []; // A repeat.
      this.#forget();
      return this.#lookAtEnd();
    }
    if (!this.#follows(stored.record)) return this.#loadOrFollow();
    this.#add(stored, moment);
    return [];
  }

  /** Whether nothing lies between the last record here and this one. */
  #follows(record: OwnersRecord): boolean {
    const { epoch, head } = this.#last;
    return record.kind === "epoch"
      ? record.before === epoch && record.head === head
      : record.edits.epoch === epoch && record.edits.firstSeq === head + 1;
  }

  #add(stored: StoredRecord, moment: Moment): void {
    if (stored.streamSeq <= this.#last.streamSeq) return;
    this.#loading?.receiveRecord(stored.record, moment);
    this.#last = endAt(stored);
  }
}

const NOTHING: LogEnd = { id: "", streamSeq: 0, epoch: 0 as Epoch, head: 0 as Seq };
