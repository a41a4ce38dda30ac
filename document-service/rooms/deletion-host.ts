/** Carries out the effects of a room's deletion (deletion.ts), and passes each outcome back. */

import { assertNever } from "../../shared/assert.ts";
import type { DeletedCheckpoint } from "../../shared/bus/checkpoint.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { HistoryHost } from "../history/history-host.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { ChangeNotifications, Checkpoints, Deletions, ObjectStore, StoredRoomLog } from "../ports.ts";
import { Deletion, type DeletionEffect, type DeletionInput, type DeletionOutcome } from "./deletion.ts";

type DeletionPorts = {
  readonly log: StoredRoomLog;
  readonly deletions: Deletions;
  readonly checkpoints: Checkpoints;
  readonly snapshots: ObjectStore;
};
type DeletionDeps = { readonly clock: Clock; readonly metrics: DocumentServiceMetrics; readonly notifications: ChangeNotifications };

type Attempt = { readonly resolve: (outcome: DeletionOutcome) => void; readonly reject: (cause: unknown) => void };

export class DeletionHost {
  readonly #room: RoomKey;
  readonly #ports: DeletionPorts;
  readonly #history: Pick<HistoryHost, "wipe">;
  readonly #deps: DeletionDeps;
  readonly #deletion = new Deletion();
  /** The caller of `wipe`, while it runs. */
  #attempt: Attempt | undefined;
  #onDone: (() => void)[] = [];

  constructor(room: RoomKey, ports: DeletionPorts, history: Pick<HistoryHost, "wipe">, deps: DeletionDeps) {
    this.#room = room;
    this.#ports = ports;
    this.#history = history;
    this.#deps = deps;
  }

  get isDeleted(): boolean {
    return this.#deletion.isDeleted;
  }

  get isDue(): boolean {
    return this.#deletion.isDue;
  }

  get uncoveredFrom(): number | undefined {
    return this.#deletion.uncoveredFrom;
  }

  /** Resolves once the log and the stores contain nothing of the room. */
  untilWiped(): Promise<void> {
    return this.#deletion.isDone ? Promise.resolve() : new Promise((resolve) => void this.#onDone.push(resolve));
  }

  receiveRecord(streamSeq: number): void {
    this.#deletion.receiveRecord(streamSeq);
  }

  receiveEntry(entry: DeletedCheckpoint): void {
    this.#deletion.receiveEntry(entry);
    this.#announceDone();
  }

  /** Resolves with whether all data is removed. If not, try again later. Rejects with the failure of a store. */
  async wipe(): Promise<boolean> {
    const outcome = await new Promise<DeletionOutcome>((resolve, reject) => {
      this.#attempt = { resolve, reject };
      this.#receive({ kind: "begin", time: this.#deps.clock.wallNow() });
    });
    if (outcome === "contended") {
      throw new Error(`another service writes the checkpoint of room ${this.#room}, which is deleted; trying again`);
    }
    return outcome === "wiped";
  }

  #receive(input: DeletionInput): void {
    for (const effect of this.#deletion.receive(input)) {
      if (effect.kind === "end") this.#end(effect.outcome);
      else void this.#carryOut(effect);
    }
  }

  async #carryOut(effect: Exclude<DeletionEffect, { kind: "end" }>): Promise<void> {
    this.#receive(
      await this.#outcomeOf(effect).catch((cause: unknown) => {
        this.#attempt?.reject(cause);
        return { kind: "failed" } as const;
      }),
    );
  }

  async #outcomeOf(effect: Exclude<DeletionEffect, { kind: "end" }>): Promise<DeletionInput> {
    const { log, deletions, checkpoints, snapshots } = this.#ports;
    switch (effect.kind) {
      case "notify-owner":
        return { kind: "owner-answered", attempt: effect.attempt, answer: await deletions.notifyOwner(this.#room) };
      case "read-checkpoint":
        return { kind: "checkpoint-read", found: await checkpoints.read(this.#room) };
      case "write-checkpoint":
        return { kind: "checkpoint-written", write: await checkpoints.write(this.#room, effect.entry, effect.revision) };
      case "remove-snapshot":
        await snapshots.remove(effect.object);
        return { kind: "snapshot-removed" };
      case "remove-history":
        await this.#history.wipe();
        return { kind: "history-removed" };
      case "read-log-end":
        return { kind: "log-end-read", end: await log.end(this.#room) };
      case "trim-log":
        await log.trim(this.#room, effect.before);
        return { kind: "log-trimmed" };
      case "announce":
        await this.#deps.notifications.receiveDeleted(this.#room);
        return { kind: "announced" };
      default:
        return assertNever(effect);
    }
  }

  #end(outcome: DeletionOutcome): void {
    this.#deps.metrics.wipes.inc({ outcome: outcome === "contended" ? "failed" : outcome });
    this.#attempt?.resolve(outcome);
    this.#attempt = undefined;
    this.#announceDone();
  }

  #announceDone(): void {
    if (this.#deletion.isDone) for (const resolve of this.#onDone.splice(0)) resolve();
  }
}
