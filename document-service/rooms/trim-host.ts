/** Trims one room's log behind its newest checkpoint, as far as the plan lets it, once what goes is in the room's history. */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import { type TrimOptions, TrimPlan } from "./compaction.ts";
import type { Document } from "./document.ts";
import type { HistoryHost } from "../past/history-host.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { EditLog } from "../ports.ts";
import type { RoomRange } from "./read-ahead-host.ts";

/** `boardsFloor`: the boards need no record up to it. */
export type TrimDeps = { readonly clock: Clock; readonly metrics: DocumentServiceMetrics; readonly boardsFloor: () => number };

export class TrimHost {
  readonly #room: RoomKey;
  readonly #log: EditLog;
  readonly #deps: TrimDeps;
  readonly #plan: TrimPlan;
  readonly #history: Pick<HistoryHost, "archive" | "archivedThrough">;
  /** Received, and as far as is known not trimmed. */
  #records = 0;
  /** What was last said that a trim reads, until it has. */
  #range: RoomRange | undefined;
  /** The newest checkpoint, and since when there is one: its date is looked at once. */
  #covered: { readonly checkpoint: Checkpoint; readonly since: Millis } | undefined;

  constructor(room: RoomKey, { log, history }: { log: EditLog; history: Pick<HistoryHost, "archive" | "archivedThrough"> }, options: TrimOptions, deps: TrimDeps) {
    this.#room = room;
    this.#log = log;
    this.#deps = deps;
    this.#plan = new TrimPlan(options);
    this.#history = history;
  }

  /** Every record in order. */
  receiveRecord({ streamSeq, time }: StoredRecord, since: Millis): void {
    this.#plan.receiveRecord({ streamSeq, since }, time);
    this.#records += 1;
  }

  isDue(document: Document, now: Millis): boolean {
    return this.#before(document, now) !== undefined;
  }

  /** Whether nothing will come to be due without another snapshot. */
  isDone({ checkpoint, leftOut }: Document): boolean {
    return checkpoint === undefined || leftOut > 0 || this.#plan.trimmedBefore >= checkpoint.streamSeq;
  }

  /** What a trim reads of the log; undefined: nothing. */
  async range(document: Document): Promise<RoomRange | undefined> {
    const through = this.#before(document, this.#deps.clock.now());
    const after = through === undefined ? undefined : await this.#history.archivedThrough();
    this.#range = through === undefined || after === undefined || after >= through ? undefined : { room: this.#room, after, through, records: this.#records };
    return this.#range;
  }

  /** `before`: one of its records, as far as which it is to be trimmed at the most. */
  async trim(document: Document, before?: number): Promise<void> {
    const due = this.#before(document, this.#deps.clock.now());
    if (due === undefined) return;
    await this.#trim(Math.min(due, before ?? due));
  }

  async #trim(before: number): Promise<void> {
    let outcome = "failed";
    try {
      await this.#history.archive(before);
      await this.#log.trim(this.#room, before);
      this.#receiveTrimmed(before);
      outcome = "trimmed";
    } finally {
      this.#deps.metrics.trims.inc({ outcome });
    }
  }

  #receiveTrimmed(before: number): void {
    this.#plan.receiveTrimmed(before);
    if (this.#range === undefined || before < this.#range.through) return;
    this.#records -= this.#range.records;
    this.#range = undefined;
  }

  #before({ checkpoint, leftOut }: Document, now: Millis): number | undefined {
    if (checkpoint === undefined || leftOut > 0) return undefined;
    if (this.#covered?.checkpoint !== checkpoint) this.#covered = { checkpoint, since: (now - Math.max(0, this.#deps.clock.wallNow() - checkpoint.time)) as Millis };
    return this.#plan.before({ streamSeq: checkpoint.streamSeq, since: this.#covered.since }, this.#deps.boardsFloor(), now);
  }
}
