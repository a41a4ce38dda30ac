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
  /** The first that was received. What stands before it is left of an earlier time. */
  #firstStreamSeq: number | undefined;
  /** The newest checkpoint, and since when there is one: its date is looked at once. */
  #covered: { readonly checkpoint: Checkpoint; readonly since: Millis } | undefined;

  constructor(
    room: RoomKey,
    { log, history }: { log: EditLog; history: Pick<HistoryHost, "archive" | "archivedThrough"> },
    options: TrimOptions,
    deps: TrimDeps,
  ) {
    this.#room = room;
    this.#log = log;
    this.#deps = deps;
    this.#plan = new TrimPlan(options);
    this.#history = history;
  }

  /** Every record in order. */
  receiveRecord({ streamSeq, time }: StoredRecord, since: Millis): void {
    this.#plan.receiveRecord({ streamSeq, since }, time);
    this.#firstStreamSeq ??= streamSeq;
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
    if (through === undefined || after === undefined || after >= through) return undefined;
    const from = Math.max(after, Math.min(through, (this.#firstStreamSeq ?? 0) - 1));
    return { room: this.#room, after, from, through, records: this.#plan.recordsThrough(through) };
  }

  /** `before`: one of its records, as far as which it is to be trimmed at the most. Whether anything was. */
  async trim(document: Document, before?: number): Promise<boolean> {
    const due = this.#before(document, this.#deps.clock.now());
    if (due === undefined) return false;
    await this.#trim(Math.min(due, before ?? due));
    return true;
  }

  async #trim(before: number): Promise<void> {
    let outcome = "failed";
    try {
      await this.#history.archive(before);
      await this.#log.trim(this.#room, before);
      this.#plan.receiveTrimmed(before);
      outcome = "trimmed";
    } finally {
      this.#deps.metrics.trims.inc({ outcome });
    }
  }

  #before({ checkpoint, leftOut }: Document, now: Millis): number | undefined {
    if (checkpoint === undefined || leftOut > 0) return undefined;
    if (this.#covered?.checkpoint !== checkpoint) {
      this.#covered = { checkpoint, since: (now - Math.max(0, this.#deps.clock.wallNow() - checkpoint.time)) as Millis };
    }
    return this.#plan.before({ streamSeq: checkpoint.streamSeq, since: this.#covered.since }, this.#deps.boardsFloor(), now);
  }
}
