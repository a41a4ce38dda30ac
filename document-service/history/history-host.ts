/** Carries out the effects of one room's history plan (history-plan.ts), and passes each outcome back. */

import { assert, assertNever } from "../../shared/assert.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { RoomKey, Seq } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { rethrowMistake } from "../../shared/time/pause.ts";
import type { Digest, Histories, ObjectStore, StoredRoomLog } from "../ports.ts";
import { readVerified, writeVerified } from "../verified-write-host.ts";
import { bytesOfHistory, type History, type HistoryPolicy } from "./history.ts";
import type { CurrentDocument, HistoryEffect, HistoryInput, HistoryJob, HistoryResult, VersionOutcome } from "./history-messages.ts";
import { HistoryPlan } from "./history-plan.ts";

type HistoryPorts = { readonly log: StoredRoomLog; readonly histories: Histories; readonly history: ObjectStore; readonly digest: Digest };
/** `newName` returns a name that no other object ever has. */
type HistoryDeps = { readonly clock: Clock; readonly log: Log; readonly newName: () => string };

type Caller = { readonly resolve: (result: HistoryResult) => void; readonly reject: (cause: unknown) => void };

export class HistoryHost {
  readonly #room: RoomKey;
  readonly #ports: HistoryPorts;
  readonly #deps: HistoryDeps;
  readonly #plan: HistoryPlan;
  #measured: { readonly history: History; readonly bytes: number } | undefined;
  #bytesFound: number | undefined;
  /** The callers of the jobs that have not ended, in the order in which the jobs end. */
  readonly #callers: Caller[] = [];

  constructor(room: RoomKey, ports: HistoryPorts, policy: HistoryPolicy, deps: HistoryDeps) {
    this.#room = room;
    this.#ports = ports;
    this.#deps = deps;
    this.#plan = new HistoryPlan(room, policy, deps.newName, deps.clock.now());
  }

  /** Bytes of all objects. Undefined: the entry is not known. */
  get bytes(): number | undefined {
    const { history } = this.#plan;
    if (history !== this.#measured?.history) this.#measured = history && { history, bytes: bytesOfHistory(history) };
    return this.#measured?.bytes;
  }

  /** The same when the entry was first read. */
  get bytesFound(): number | undefined {
    return this.#bytesFound;
  }

  /** Reads the entry if it is not known. */
  async measure(): Promise<number> {
    return bytesOfHistory(await this.#current());
  }

  /** The stream sequence of the last record that is or was in a segment. Undefined: no record is archived. */
  async archivedThrough(): Promise<number | undefined> {
    if (!this.#plan.isKept) return undefined;
    const { through, deleted } = await this.#current();
    return deleted ? undefined : through;
  }

  async isVersionDue(seq: Seq): Promise<boolean> {
    const history = await this.#current();
    const { clock } = this.#deps;
    return this.#plan.isVersionDue(history, seq, clock.now(), clock.wallNow());
  }

  /** Puts the room's records before this one into segments. Call it before they are trimmed. */
  async archive(before: number): Promise<void> {
    await this.#run({ kind: "archive", before });
  }

  /** Keeps the document as it is now. A version with a name stays until `removeVersion`. */
  async addVersion(document: CurrentDocument, name?: string): Promise<VersionOutcome> {
    const result = await this.#run({ kind: "add-version", document, name });
    assert(result.kind === "named" || result.kind === "too-many" || result.kind === "deleted", "an added version has such a result");
    return result;
  }

  /** Resolves with whether the version existed. */
  async removeVersion(id: string): Promise<boolean> {
    return (await this.#run({ kind: "remove-version", id })).kind === "done";
  }

  async removeOrphans(names: readonly string[]): Promise<void> {
    await this.#run({ kind: "remove-orphans", names });
  }

  async wipe(): Promise<void> {
    await this.#run({ kind: "wipe" });
  }

  async #current(): Promise<History> {
    const history = this.#plan.history ?? this.#plan.receiveEntry(await this.#ports.histories.read(this.#room));
    this.#bytesFound ??= this.bytes;
    return history;
  }

  async #run(job: HistoryJob): Promise<HistoryResult> {
    const result = await new Promise<HistoryResult>((resolve, reject) => {
      this.#callers.push({ resolve, reject });
      this.#receive({ kind: "job", job });
    });
    if (result.kind === "failed") throw new Error(result.why);
    return result;
  }

  #receive(input: HistoryInput): void {
    const effects = this.#plan.receive(input, this.#deps.clock.wallNow(), this.#ports.histories.storeDate());
    this.#bytesFound ??= this.bytes;
    for (const effect of effects) {
      if (effect.kind === "end") this.#callers.shift()?.resolve(effect.result);
      else void this.#carryOut(effect);
    }
  }

  async #carryOut(effect: Exclude<HistoryEffect, { kind: "end" }>): Promise<void> {
    this.#receive(
      await this.#outcomeOf(effect).catch((cause: unknown) => {
        this.#callers.shift()?.reject(cause);
        return { kind: "failed" } as const;
      }),
    );
  }

  async #outcomeOf(effect: Exclude<HistoryEffect, { kind: "end" }>): Promise<HistoryInput> {
    const { log, histories, history, digest } = this.#ports;
    switch (effect.kind) {
      case "read-entry":
        return { kind: "entry-read", found: await histories.read(this.#room) };
      case "write-entry":
        return { kind: "entry-written", write: await histories.write(this.#room, effect.history, effect.revision) };
      case "read-records":
        return this.#readRecords(effect);
      case "read-log-end":
        return { kind: "log-end-read", end: await log.end(this.#room) };
      case "read-segment":
        return { kind: "segment-read", bytes: await readVerified(history, digest, effect.segment) };
      case "write-object":
        return { kind: "object-written", written: await writeVerified(history, digest, effect.object, effect.bytes) };
      case "remove-objects":
        for (const object of effect.objects) await this.#remove(object);
        return { kind: "objects-removed" };
      case "erase-objects":
        for (const object of effect.objects) await history.remove(object);
        return { kind: "objects-removed" };
      default:
        return assertNever(effect);
    }
  }

  async #readRecords({ after, before, bytesMax }: HistoryEffect & { kind: "read-records" }): Promise<HistoryInput> {
    const records: StoredRecord[] = [];
    let bytes = 0;
    for await (const record of this.#ports.log.read(this.#room, after, before)) {
      if (record.streamSeq === before || bytes > bytesMax) return { kind: "records-read", records, isComplete: true };
      records.push({ ...record, bytes: record.bytes.slice() });
      bytes += record.bytes.byteLength;
    }
    return { kind: "records-read", records, isComplete: false };
  }

  async #remove(object: string): Promise<void> {
    try {
      await this.#ports.history.remove(object);
    } catch (cause) {
      rethrowMistake(cause);
      this.#deps.log.warn({ room: this.#room, object, cause }, "an object of a room's history was not removed; a later sweep removes it");
    }
  }
}
