/** Answers reads of one room's history: carries out the effects of each read (history-reads.ts). */

import { assert, assertNever } from "../../shared/assert.ts";
import type { RoomKey, Seq } from "../../shared/ids.ts";
import type { Digest, Histories, ObjectStore, Reverting, StoredRoomLog } from "../ports.ts";
import { readVerified } from "../verified-write-host.ts";
import type { History } from "./history.ts";
import type { HistoryHost } from "./history-host.ts";
import type { CurrentDocument, VersionOutcome } from "./history-messages.ts";
import {
  type HistoryMoment,
  type HistoryReadEffect,
  type HistoryReadInput,
  type HistoryReadsOptions,
  type HistoryRefusal,
  type HistoryState,
  planNaming,
  StateRead,
} from "./history-reads.ts";
import type { TailReader } from "./log-tail.ts";
import type { Reverted } from "./reverting.ts";
import { SessionsRead, type WritingSessions } from "./sessions-read.ts";

export type HistoryReadsPorts = {
  readonly log: StoredRoomLog;
  readonly histories: Histories;
  readonly history: ObjectStore;
  readonly reverting: Reverting;
  readonly digest: Digest;
};
/** `present` resolves with a document that has all edits up to `seq`, or with undefined if it cannot be read at the moment. */
type HistoryReadsParts = {
  readonly history: HistoryHost;
  readonly present: (seq: Seq) => Promise<CurrentDocument | undefined>;
};

type Read<Answer> = {
  begin(): HistoryReadEffect<Answer>;
  receive(input: HistoryReadInput): HistoryReadEffect<Answer>;
};

export class HistoryReadsHost {
  readonly #room: RoomKey;
  readonly #ports: HistoryReadsPorts;
  readonly #options: HistoryReadsOptions;
  readonly #parts: HistoryReadsParts;

  constructor(room: RoomKey, ports: HistoryReadsPorts, options: HistoryReadsOptions, parts: HistoryReadsParts) {
    this.#room = room;
    this.#ports = ports;
    this.#options = options;
    this.#parts = parts;
  }

  async list(): Promise<History> {
    return (await this.#ports.histories.read(this.#room)).history;
  }

  /** Keeps the current document under a name. */
  async name(name: string): Promise<VersionOutcome | { readonly kind: "loading" | "no-document" }> {
    const naming = planNaming(await this.#readCurrent());
    return naming.kind === "name" ? this.#parts.history.addVersion(naming.document, name) : naming;
  }

  /** Resolves with whether the version existed. */
  removeVersion(id: string): Promise<boolean> {
    return this.#parts.history.removeVersion(id);
  }

  /** `signal`: aborted once no caller waits for the answer. */
  async readAt(moment: HistoryMoment, signal?: AbortSignal): Promise<HistoryState> {
    const answer = await this.#run(new StateRead(moment, "state", this.#options), signal);
    assert(answer.kind !== "edit" && answer.kind !== "unchanged" && answer.kind !== "unfit", "a state was asked for");
    return answer;
  }

  /** The edit that brings the document back to the moment. The caller decides whether to send it. */
  async revert(moment: HistoryMoment, signal?: AbortSignal): Promise<Reverted | HistoryRefusal> {
    const answer = await this.#run(new StateRead(moment, "revert", this.#options), signal);
    assert(answer.kind !== "state", "an edit was asked for");
    return answer;
  }

  sessions(from: Seq, signal?: AbortSignal): Promise<WritingSessions> {
    return this.#run(new SessionsRead(from, this.#options), signal);
  }

  async #run<Answer>(read: Read<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
    let effect = read.begin();
    while (effect.kind !== "answer") effect = read.receive(await this.#outcomeOf(effect, signal));
    return effect.answer;
  }

  async #outcomeOf(
    effect: Exclude<HistoryReadEffect<never>, { kind: "answer" }>,
    signal: AbortSignal | undefined,
  ): Promise<HistoryReadInput> {
    const { log, history, reverting, digest } = this.#ports;
    switch (effect.kind) {
      case "read-entry":
        return { kind: "entry-read", history: await this.list() };
      case "read-log-end":
        return { kind: "log-end-read", end: await log.end(this.#room) };
      case "read-object":
        return { kind: "object-read", bytes: await readVerified(history, digest, effect) };
      case "read-tail":
        return { kind: "tail-read", isAborted: await this.#readTail(effect.after, effect.reader, signal) };
      case "merge":
        return { kind: "merged", merged: await reverting.mergeHistory(effect.state, effect.edits, this.#room, signal) };
      case "read-current":
        return { kind: "current-read", document: await this.#readCurrent() };
      case "revert":
        return { kind: "reverted", reverted: await reverting.revert(effect.current, effect.earlier, this.#room) };
      default:
        return assertNever(effect);
    }
  }

  /**
   * The document with all edits that the log has now. The room reads the log at an interval, and the caller may know newer
   * edits: a version would lack them, and a restore would leave them in place.
   */
  async #readCurrent(): Promise<CurrentDocument | undefined> {
    const end = await this.#ports.log.end(this.#room);
    return this.#parts.present(end.kind === "at" ? end.seq : (0 as Seq));
  }

  /** Resolves with whether the signal ended the read. */
  async #readTail(after: number, reader: TailReader, signal: AbortSignal | undefined): Promise<boolean> {
    for await (const stored of this.#ports.log.read(this.#room, after, Number.MAX_SAFE_INTEGER)) {
      if (signal?.aborted === true) return true;
      if (reader.receiveRecord(stored) === "done") return false;
    }
    return false;
  }
}
