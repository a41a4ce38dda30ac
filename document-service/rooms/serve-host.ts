/** Serves one room's document to whoever asks, merged as far as they need it, and knows when it was last used. */

import type { Clock } from "../../shared/clock.ts";
import type { Millis, Position } from "../../shared/ids.ts";
import { EMPTY_STATE } from "../merge.ts";
import type { MergedState } from "./document.ts";
import type { IntakeHost } from "./intake-host.ts";
import type { MergeHost } from "./merge-host.ts";
import type { Watermark } from "./watermarks.ts";
import type { WipeHost } from "./wipe-host.ts";

export type ServeOptions = { readonly snapshotLagBytesMax: number };

/** "joinable": of a long document the few newest edits may be missing, for whoever joins from there is sent them. */
export type Freshness = "newest" | "joinable";

/** What tells an edit from every other one. */
export type EditName = Pick<Watermark, "client" | "counter">;

export type Served =
  /** `last`: the edit at the position, where it is known. */
  | { kind: "snapshot"; state: Uint8Array; position: Position; last?: EditName | undefined }
  /** The room never had an edit, as far as is known here. */
  | { kind: "no-document" }
  /** None of its edits is a Yjs update. */
  | { kind: "not-a-document" }
  /** For good. */
  | { kind: "deleted" }
  /** Not now: ask again. */
  | { kind: "loading" };

type Parts = { readonly intake: IntakeHost; readonly merges: MergeHost; readonly wipe: WipeHost };

export class ServeHost {
  readonly #intake: IntakeHost;
  readonly #merges: MergeHost;
  readonly #wipe: WipeHost;
  readonly #lagBytesMax: number;
  readonly #clock: Clock;
  #lastUsed: Millis;

  constructor({ intake, merges, wipe }: Parts, { snapshotLagBytesMax }: ServeOptions, clock: Clock) {
    this.#intake = intake;
    this.#merges = merges;
    this.#wipe = wipe;
    this.#lagBytesMax = snapshotLagBytesMax;
    this.#clock = clock;
    this.#lastUsed = clock.now();
  }

  /** When somebody last asked for it, or wrote. */
  get lastUsed(): Millis {
    return this.#lastUsed;
  }

  noteUsed(now: Millis): void {
    this.#lastUsed = now;
  }

  /**
   * "newest": with all records received by now. However many ask at once, it is merged once, or twice where a merge
   * was under way already. Nothing is merged for whoever wants a seq that was not received yet.
   */
  async serve(freshness: Freshness, minSeq: number): Promise<Served> {
    const document = await this.#intake.opened;
    if (this.#wipe.isDeleted) return { kind: "deleted" };
    if (document === undefined) return { kind: "loading" };
    if (document.applied.seq === 0) return { kind: "no-document" };
    if (document.applied.seq < minSeq) return { kind: "loading" };
    const nearly = freshness === "joinable" ? document.nearlyMerged(this.#lagBytesMax) : undefined;
    if (nearly !== undefined) this.#lastUsed = this.#clock.now();
    const merged = nearly ?? (await this.present());
    if (this.#wipe.isDeleted) return { kind: "deleted" };
    if (merged === undefined || merged.applied.seq === 0) return { kind: "loading" };
    const { state, applied, clients, leftOut } = merged;
    if (leftOut > 0 && state.byteLength <= EMPTY_STATE.byteLength) return { kind: "not-a-document" };
    return {
      kind: "snapshot",
      state,
      position: { epoch: applied.epoch, seq: applied.seq },
      last: clients.findLast(({ seq }) => seq === applied.seq),
    };
  }

  /** With all records received by now. */
  async present(): Promise<MergedState | undefined> {
    const document = await this.#intake.opened;
    if (document === undefined) return undefined;
    this.#lastUsed = this.#clock.now();
    const asked = document.applied.seq;
    const merged = await this.#merges.merge(document);
    return merged !== undefined && merged.applied.seq < asked ? this.#merges.merge(document) : merged;
  }
}
