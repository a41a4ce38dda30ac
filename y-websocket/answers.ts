/**
 * Which of one client's questions are answered at once. One of a few bytes may be answered with the whole document, or
 * with what everybody shows: each is charged by its answer, and once too much was said the next waits. Rules YAN1, YAN2.
 */

import type { Clock } from "../shared/clock.ts";
import { type Rate, TokenBucket } from "../shared/token-bucket.ts";
import type { YMessage } from "./protocol.ts";

export type Question = Extract<YMessage, { readonly kind: "sync-request" | "awareness-request" }>;

/** What a question costs beside its own bytes and those of its answer. */
const QUESTION_BYTES = 1_024;
const LATER_MS = 1_000;

export class Answers {
  readonly #clock: Clock;
  readonly #bytes: TokenBucket;
  readonly #ask: (question: Question) => void;
  readonly #later = new Map<Question["kind"], Question>();
  #stopWaiting = (): void => {};

  /** `ask`: is told again of what had to wait. */
  constructor(bytes: Rate, clock: Clock, ask: (question: Question) => void) {
    this.#clock = clock;
    this.#bytes = new TokenBucket(bytes, clock.now());
    this.#ask = ask;
  }

  /** False: it waits. Of each kind the newest does, which tells best what the client has by then. */
  mayAnswer(question: Question): boolean {
    if (this.#bytes.take(this.#clock.now(), 0)) return true;
    if (this.#later.size === 0) this.#stopWaiting = this.#clock.after(LATER_MS, () => this.#askAgain());
    this.#later.set(question.kind, question);
    return false;
  }

  charge(question: Question, answer: Uint8Array): void {
    const asked = question.kind === "sync-request" ? question.stateVector.byteLength : 0;
    this.#bytes.spend(this.#clock.now(), QUESTION_BYTES + asked + answer.byteLength);
  }

  stop(): void {
    this.#stopWaiting();
    this.#later.clear();
  }

  #askAgain(): void {
    const questions = [...this.#later.values()];
    this.#later.clear();
    for (const question of questions) this.#ask(question);
  }
}
