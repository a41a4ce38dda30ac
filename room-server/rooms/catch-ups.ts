/**
 * What a gateway gets that asks for the edits after a position: none, unless the position is of this log. A gateway may
 * see a record before its owner knows that the log has it: a position that the append in flight will reach waits for it.
 * Rules CUP1 to CUP5.
 */

import { assertNever } from "../../shared/assert.ts";
import type { CatchUp, ToOwner } from "../../shared/bus/envelope.ts";
import { type EpochHistory, isForgotten, standingOf } from "../../shared/bus/epoch-history.ts";
import type { Epoch, Seq } from "../../shared/ids.ts";
import { NO_ITEMS } from "../../shared/seldom.ts";
import type { Backlog } from "./backlog.ts";
import { AnswerPacker } from "./edits-range.ts";

export type CatchUpRequest = ToOwner & { kind: "catch-up-request" };

export type CatchUpDecision =
  | { kind: "answer"; answer: CatchUp }
  /** The position is not of this log, or `isForgotten`: so old that nobody knows. */
  | { kind: "resync"; answer: CatchUp; isForgotten: boolean }
  /** The range is not in memory. */
  | { kind: "read-log"; request: CatchUpRequest }
  /** It waits for the append in flight. */
  | { kind: "deferred" }
  /** Too many wait: it gets no answer, and its gateway asks again. */
  | { kind: "full" }
  /** Its gateway has heard of a later owner. */
  | { kind: "doubt" };

/** How far the room has come, and by which epochs; `inFlight`: edits that the append in flight adds to it. */
export type Standing = { readonly epoch: Epoch; readonly epochs: EpochHistory; readonly head: Seq; readonly inFlight: number };
export type CatchUpsOptions = { readonly answerBytesMax: number; readonly deferredCatchUpsMax: number };

export class CatchUps {
  readonly #backlog: Backlog;
  readonly #options: CatchUpsOptions;
  #deferred: readonly CatchUpRequest[] = NO_ITEMS;

  constructor(backlog: Backlog, options: CatchUpsOptions) {
    this.#backlog = backlog;
    this.#options = options;
  }

  decide(request: CatchUpRequest, { epoch, epochs, head, inFlight }: Standing): CatchUpDecision {
    const { after } = request;
    if (after.epoch > epoch) return { kind: "doubt" };
    if (after.seq > head && after.seq <= head + inFlight) {
      if (this.#deferred.length >= this.#options.deferredCatchUpsMax) return { kind: "full" };
      this.#deferred = [...this.#deferred, request];
      return { kind: "deferred" };
    }
    const through = request.through === 0 ? head : (Math.min(request.through, head) as Seq);
    const standing = standingOf(after, epochs, head);
    if (standing !== "of-this-log")
      return { kind: "resync", answer: { kind: "resync", reason: standing }, isForgotten: isForgotten(after.epoch, epochs) };
    const answer = this.#backlog.range(after.seq, through);
    switch (answer.kind) {
      case "older":
        return { kind: "read-log", request: { ...request, through } };
      case "edits":
        return { kind: "answer", answer: this.#pack(answer.parts) };
      default:
        return assertNever(answer);
    }
  }

  /** Those that waited for the append which has settled now. */
  takeDeferred(): readonly CatchUpRequest[] {
    const deferred = this.#deferred;
    this.#deferred = NO_ITEMS;
    return deferred;
  }

  #pack(parts: readonly Uint8Array[]): CatchUp {
    const packer = new AnswerPacker(this.#options);
    for (const part of parts) if (!packer.add(part)) break;
    return packer.answer();
  }
}
