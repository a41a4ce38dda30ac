/**
 * Limits the answers to one client. The answer to a request of a few bytes may be the complete document or all
 * awareness states, so each request costs the size of its answer. Requests wait while the client is above the rate, and
 * while an answer is made. Rules YAN1, YAN2.
 */

import type { Clock } from "../shared/time/clock.ts";
import { type Rate, TokenBucket } from "../shared/limits/token-bucket.ts";
import type { YMessage } from "./y-websocket-protocol.ts";

export type StateRequest = Extract<YMessage, { readonly kind: "sync-request" | "awareness-request" }>;

/** Cost of a request in addition to its own bytes and the bytes of its answer. */
const REQUEST_BYTES = 8_192;
const LATER_MS = 1_000;

export class Answers {
  readonly #clock: Clock;
  readonly #bytes: TokenBucket;
  readonly #ask: (request: StateRequest) => void;
  readonly #later = new Map<StateRequest["kind"], StateRequest>();
  #isAnswering = false;
  #stopWaiting = (): void => {};

  /** `ask`: called again with each request that had to wait. */
  constructor(bytes: Rate, clock: Clock, ask: (request: StateRequest) => void) {
    this.#clock = clock;
    this.#bytes = new TokenBucket(bytes, clock.now());
    this.#ask = ask;
  }

  /** False: the request waits. Only the newest request of each kind is kept, because it describes the client's state best. */
  mayAnswer(request: StateRequest): boolean {
    if (!this.#isAnswering && this.#bytes.take(this.#clock.now(), 0)) return (this.#isAnswering = true);
    if (this.#later.size === 0) this.#stopWaiting = this.#clock.after(LATER_MS, () => this.#askAgain());
    this.#later.set(request.kind, request);
    return false;
  }

  /** The answer is ready. `workBytes`: the cost of the work, if it is higher than the bytes of the answer. */
  charge(request: StateRequest, answer: Uint8Array, workBytes = 0): void {
    this.#isAnswering = false;
    const asked = request.kind === "sync-request" ? request.stateVector.byteLength : 0;
    this.#bytes.spend(this.#clock.now(), REQUEST_BYTES + asked + Math.max(answer.byteLength, workBytes));
  }

  stop(): void {
    this.#stopWaiting();
    this.#later.clear();
  }

  #askAgain(): void {
    const requests = [...this.#later.values()];
    this.#later.clear();
    for (const request of requests) this.#ask(request);
  }
}
