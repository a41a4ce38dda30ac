/**
 * Answers a gateway's request for the edits after a position, if the position is in this log. A gateway may receive a
 * record before the owner knows that it is stored. So a request for a position that the append in flight will reach
 * waits for it. Rules CUP1 to CUP5.
 */

import { assertNever } from "../../shared/assert.ts";
import type { CatchUp, ToOwner } from "../../shared/bus/envelope.ts";
import { type EpochHistory, isForgotten, checkPosition } from "../../shared/bus/epoch-history.ts";
import type { Epoch, Seq } from "../../shared/ids.ts";
import { NO_ITEMS } from "../../shared/collections/lazy-map.ts";
import { AnswerPacker, type Backlog } from "./backlog.ts";

export type CatchUpRequest = ToOwner & { kind: "catch-up-request" };

type CatchUpDecision =
  | { kind: "answer"; answer: CatchUp }
  /** The position is not in this log. `isForgotten`: it is too old to decide. */
  | { kind: "resync"; answer: CatchUp; isForgotten: boolean }
  /** The range is not in memory. */
  | { kind: "read-log"; request: CatchUpRequest }
  /** The request waits for the append in flight. */
  | { kind: "deferred" }
  /** Too many requests wait. This one gets no answer, and its gateway repeats it. */
  | { kind: "full" }
  /** The gateway knows a later owner. */
  | { kind: "check-ownership" };

/** The room's epoch, head and epoch history. `inFlight`: number of edits that the append in flight adds. */
type CatchUpContext = { readonly epoch: Epoch; readonly epochs: EpochHistory; readonly head: Seq; readonly inFlight: number };
export type CatchUpsOptions = { readonly answerBytesMax: number; readonly deferredCatchUpsMax: number };

export class CatchUpAnswers {
  readonly #backlog: Backlog;
  readonly #options: CatchUpsOptions;
  #deferred: readonly CatchUpRequest[] = NO_ITEMS;

  constructor(backlog: Backlog, options: CatchUpsOptions) {
    this.#backlog = backlog;
    this.#options = options;
  }

  decide(request: CatchUpRequest, { epoch, epochs, head, inFlight }: CatchUpContext): CatchUpDecision {
    const { after } = request;
    if (after.epoch > epoch) return { kind: "check-ownership" };
    if (after.seq > head && after.seq <= head + inFlight) {
      if (this.#deferred.length >= this.#options.deferredCatchUpsMax) return { kind: "full" };
      this.#deferred = [...this.#deferred, request];
      return { kind: "deferred" };
    }
    const through = request.through === 0 ? head : (Math.min(request.through, head) as Seq);
    const check = checkPosition(after, epochs, head);
    if (check !== "of-this-log")
      return { kind: "resync", answer: { kind: "resync", reason: check }, isForgotten: isForgotten(after.epoch, epochs) };
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

  /** The requests that waited for the append that settled now. */
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
