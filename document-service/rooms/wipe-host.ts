/**
 * Wipes one room that is deleted, step by step. The record in its log is the deletion; from there on this may fail or
 * the process may die after any step, and the next try, here or elsewhere, goes on to the same end:
 *
 *   checkpoint says "deleted" -> snapshot -> history says "deleted" -> versions and segments -> log before that record
 *     -> nobody owns the room -> told outside -> checkpoint says "done"
 *
 * Each store says that the room is deleted before anything goes from it: whoever is late to add something finds that.
 */

import type { DeletedCheckpoint } from "../../shared/bus/checkpoint.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { CheckpointHost } from "./checkpoint-host.ts";
import type { HistoryHost } from "../past/history-host.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { Deletions, EditLog, News } from "../ports.ts";

export type WipePorts = { readonly log: EditLog; readonly deletions: Deletions };
export type WipeDeps = { readonly clock: Clock; readonly metrics: DocumentServiceMetrics; readonly news: News };

type State = { readonly kind: "living" } | { readonly kind: "wiping"; readonly streamSeq: number | undefined } | { readonly kind: "wiped" };

export class WipeHost {
  readonly #room: RoomKey;
  readonly #ports: WipePorts;
  readonly #checkpoints: CheckpointHost;
  readonly #history: Pick<HistoryHost, "wipe">;
  readonly #deps: WipeDeps;
  #state: State = { kind: "living" };
  #lastRecord = 0;
  #tellWiped: (() => void)[] = [];

  constructor(
    room: RoomKey,
    ports: WipePorts,
    { checkpoints, history }: { checkpoints: CheckpointHost; history: Pick<HistoryHost, "wipe"> },
    deps: WipeDeps,
  ) {
    this.#room = room;
    this.#ports = ports;
    this.#checkpoints = checkpoints;
    this.#history = history;
    this.#deps = deps;
  }

  get isDeleted(): boolean {
    return this.#state.kind !== "living";
  }

  get isDue(): boolean {
    return this.#state.kind === "wiping";
  }

  /** The record that is to be read again until all is done. */
  get uncoveredFrom(): number | undefined {
    return this.#state.kind === "wiping" ? this.#state.streamSeq : undefined;
  }

  /** Resolves once nothing of the room is left in the log and the stores. */
  untilWiped(): Promise<void> {
    return this.#state.kind === "wiped" ? Promise.resolve() : new Promise((resolve) => void this.#tellWiped.push(resolve));
  }

  /** Read in the log, perhaps again, or written twice. */
  receiveRecord(streamSeq: number): void {
    if (streamSeq <= this.#lastRecord) return;
    this.#lastRecord = streamSeq;
    this.#state = { kind: "wiping", streamSeq };
  }

  /** Read in the checkpoint's place. */
  receiveEntry({ wiping }: DeletedCheckpoint): void {
    if (this.#state.kind !== "living") return;
    if (wiping === true) this.#state = { kind: "wiping", streamSeq: undefined };
    else this.#end();
  }

  /** Whether it is done. If not, the room's owner does not hear yet, and it is to be tried again. */
  async wipe(): Promise<boolean> {
    let outcome = "failed";
    try {
      outcome = await this.#wipe();
    } finally {
      this.#deps.metrics.wipes.inc({ outcome });
    }
    if (outcome === "wiped") this.#end();
    return outcome === "wiped";
  }

  async #wipe(): Promise<"wiped" | "owned"> {
    const { log, deletions } = this.#ports;
    const owner = deletions.tellOwner(this.#room); // The sooner it knows, the sooner nobody is shown anything.
    const time = this.#deps.clock.wallNow();
    const isNews = await this.#checkpoints.wipe(time);
    if (isNews) await this.#history.wipe();
    const end = await log.end(this.#room);
    if (end.kind === "deleted") await log.trim(this.#room, end.streamSeq);
    if (!isNews) return "wiped";
    if ((await owner) === "somebody" && (await deletions.tellOwner(this.#room)) === "somebody") return "owned";
    await this.#deps.news.receiveDeleted(this.#room);
    await this.#checkpoints.endWipe(time);
    return "wiped";
  }

  #end(): void {
    this.#state = { kind: "wiped" };
    for (const tell of this.#tellWiped.splice(0)) tell();
  }
}
