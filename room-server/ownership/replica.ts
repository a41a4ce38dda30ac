/**
 * A replica of a room that another server owns: each writer's progress and the newest edits, taken from republished
 * records and repaired from the log. With a replica, a takeover has nothing to load. A replica may be behind without
 * risk: the takeover fences at the log's end and loads the missing records. But a replica contains records of one log,
 * never parts of two. A new record must follow the last one by epoch and seq, or directly follow it in the log.
 * Otherwise the log lost its end, and the replica starts again. Rules REP1 to REP9.
 */

import { assertNever } from "../../shared/assert.ts";
import { type Checkpoint, isAheadOfLog } from "../../shared/bus/checkpoint.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import { epochOf, type OwnersRecord, serverOf } from "../../shared/bus/record.ts";
import type { Epoch, Seq, ServerId } from "../../shared/ids.ts";
import type { DecodedRecord } from "../ports.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import { Loading, type LoadingOptions, type LoadTime } from "../rooms/loading.ts";
import { endAt, type ReplicaContent } from "./claim.ts";

export type ReplicaInput =
  /** Subscribed: no later announcement is missed. Earlier ones may have been missed. */
  | { kind: "attached" }
  | { kind: "log-end-read"; last: DecodedRecord | undefined; checkpoint: Checkpoint | undefined }
  | { kind: "log-read"; stored: DecodedRecord }
  | { kind: "log-loaded" }
  | { kind: "announced"; stored: DecodedRecord }
  /** The owner announces the room's head. */
  | { kind: "beacon"; head: Seq }
  /** The awaited result failed. */
  | { kind: "failed" }
  | { kind: "tick" };

export type ReplicaEffect =
  | { kind: "read-log-end" }
  /** Reads the room's records in `after < streamSeq <= through`. */
  | { kind: "load"; after: number; through: number }
  /** The replica has all records that the log had at the time of the request. */
  | { kind: "warm" };

type State =
  | { kind: "idle" }
  | { kind: "reading" }
  /** `unfound`: the replica's own last record, which the log must return first. */
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
  /** The newest announced record; the records before it are still to be read. */
  #announcedHead = 0;
  /** An announcement was missed while the log was read. */
  #hasMissed = false;

  constructor(options: LoadingOptions, budget: BacklogBudget) {
    this.#options = options;
    this.#budget = budget;
  }

  get isWarm(): boolean {
    return this.#state.kind === "following";
  }

  /** The writer of the replica's newest record, if there is one. */
  get writer(): ServerId | undefined {
    return this.#last.id === "" ? undefined : serverOf(this.#last);
  }

  /**
   * Returns the content for a takeover. The object cannot be used afterwards. Undefined without any record: no server
   * is known as the owner, and the claim loads the checkpoint itself.
   */
  take(): ReplicaContent | undefined {
    const [loading, isProven] = [this.#loading, this.isWarm];
    this.#loading = undefined;
    this.#state = { kind: "idle" };
    if (loading === undefined) return undefined;
    if (loading.isComplete && this.writer !== undefined) return { loading, last: this.#last, isProven };
    loading.clear();
    return undefined;
  }

  receiveReplicaInput(input: ReplicaInput, moment: LoadTime): ReplicaEffect[] {
    switch (input.kind) {
      case "attached":
        return this.#lookAtEnd();
      case "log-end-read":
        return this.#state.kind === "reading" ? this.#receiveEnd(input.last, input.checkpoint, moment) : [];
      case "log-read":
        if (this.#state.kind === "loading") this.#receiveRead(this.#state, input.stored, moment);
        return [];
      case "log-loaded":
        return this.#state.kind === "loading" ? this.#receiveLoaded(this.#state) : [];
      case "announced":
        return this.#receiveFanOut(input.stored, moment);
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
      this.#hasMissed = true;
      return [];
    }
    this.#state = { kind: "reading" };
    this.#announcedHead = 0; // Records that were announced before are in the log, or lost.
    return [{ kind: "read-log-end" }];
  }

  #receiveEnd(last: DecodedRecord | undefined, checkpoint: Checkpoint | undefined, moment: LoadTime): ReplicaEffect[] {
    const end = last?.streamSeq ?? 0;
    // The replica starts again if it lacks an edit, or if the log lost records that the replica has or that a
    // checkpoint covers.
    if (this.#loading?.isComplete !== true || this.#isOff(last) || isAheadOfLog(checkpoint, last)) this.#begin(checkpoint, moment);
    if (last !== undefined && end === this.#last.streamSeq) this.#last = endAt(last);
    this.#announcedHead = Math.max(this.#announcedHead, end);
    return this.#loadOrFollow();
  }

  #begin(checkpoint: Checkpoint | undefined, moment: LoadTime): void {
    this.#loading?.clear();
    this.#loading = new Loading(checkpoint, this.#options, this.#budget, moment.now);
    this.#last =
      checkpoint === undefined ? NOTHING : { id: "", streamSeq: checkpoint.streamSeq, epoch: checkpoint.epoch, head: checkpoint.seq };
  }

  #isOff(last: DecodedRecord | undefined): boolean {
    const end = last?.streamSeq ?? 0;
    return this.#last.streamSeq > end || (this.#last.streamSeq === end && this.#last.id !== last?.record.id);
  }

  #receiveRead(state: State & { kind: "loading" }, stored: DecodedRecord, moment: LoadTime): void {
    if (state.unfound === undefined) return this.#add(stored, moment);
    if (state.unfound === stored.record.id) state.unfound = undefined;
  }

  #receiveLoaded({ through, unfound }: State & { kind: "loading" }): ReplicaEffect[] {
    if (unfound !== undefined) this.#forget();
    else if (this.#loading?.isComplete === true && this.#last.streamSeq >= through) return this.#loadOrFollow();
    this.#state = { kind: "failed" }; // The log was trimmed in the meantime, or lost its end.
    return [];
  }

  #forget(): void {
    this.#loading?.clear();
    this.#loading = undefined;
    this.#last = NOTHING;
  }

  #loadOrFollow(): ReplicaEffect[] {
    if (this.#announcedHead > this.#last.streamSeq) {
      const unfound = this.#last.id === "" ? undefined : this.#last.id;
      this.#state = { kind: "loading", through: this.#announcedHead, unfound };
      return [
        { kind: "load", after: unfound === undefined ? this.#last.streamSeq : this.#last.streamSeq - 1, through: this.#announcedHead },
      ];
    }
    this.#state = { kind: "following" };
    if (!this.#hasMissed) return [{ kind: "warm" }];
    this.#hasMissed = false;
    return this.#lookAtEnd();
  }

  #receiveFanOut(stored: DecodedRecord, moment: LoadTime): ReplicaEffect[] {
    this.#announcedHead = Math.max(this.#announcedHead, stored.streamSeq);
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

  /** Whether the record directly follows the last record here. */
  #follows(record: OwnersRecord): boolean {
    const { epoch, head } = this.#last;
    return record.kind === "epoch"
      ? record.before === epoch && record.head === head
      : record.edits.epoch === epoch && record.edits.firstSeq === head + 1;
  }

  #add(stored: DecodedRecord, moment: LoadTime): void {
    this.#loading?.receiveRecord(stored.record, moment);
    this.#last = endAt(stored);
  }
}

const NOTHING: LogEnd = { id: "", streamSeq: 0, epoch: 0 as Epoch, head: 0 as Seq };
