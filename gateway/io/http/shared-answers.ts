/**
 * One call serves all clients that request the same thing at the same time: while the call runs, or within `sharedMs`
 * of the first request. The answer is kept longer while it is current and clients request it. The total bytes of shared
 * answers are bounded, and an answer counts until its slowest reader has it. An answer that is too large is streamed to
 * each client separately.
 */

import type { Clock } from "../../../shared/time/clock.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { piecesOf } from "./broken-answers.ts";

export type SharedAnswersOptions = {
  /**
   * Milliseconds after the first request during which an answer is shared. The answer may lag behind by this time. 0:
   * it is shared only while the call runs.
   */
  readonly sharedMs: number;
  readonly bytesMax: number;
  /** Whether an answer with this status is shared after the call. Default: below 400, because a new call may succeed where this one failed. */
  readonly isKept?: (status: number) => boolean;
};

type Fetch = () => Promise<HttpAnswer | undefined>;
/** Whether a new call would bring the same answer. */
type IsCurrent = (answer: HttpAnswer) => boolean;
/** `give` passes the answer to one more reader, `forget` stops sharing it. `tooLarge`: each client makes its own call. */
type Shared =
  | { readonly kind: "answer"; readonly isKept: boolean; readonly give: () => HttpAnswer | undefined; readonly forget: () => void }
  | { readonly kind: "tooLarge" };

export class SharedAnswers {
  readonly #options: SharedAnswersOptions;
  readonly #clock: Clock;
  readonly #shared = new Map<string, Promise<Shared>>();
  /** Keys that were requested again since the last check. */
  readonly #wanted = new Set<string>();
  #bytes = 0;

  constructor(options: SharedAnswersOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  async get(key: string, fetch: Fetch, isCurrent: IsCurrent = () => false): Promise<HttpAnswer | undefined> {
    const underWay = this.#shared.get(key);
    if (underWay === undefined) return this.#begin(key, fetch, isCurrent);
    this.#wanted.add(key);
    const shared = await underWay;
    return shared.kind === "answer" ? shared.give() : fetch();
  }

  async #begin(key: string, fetch: Fetch, isCurrent: IsCurrent): Promise<HttpAnswer | undefined> {
    const begun = this.#clock.now();
    const answer = fetch();
    const shared = answer.then((given) => this.#hold(given));
    this.#shared.set(key, shared);
    try {
      const held = await shared;
      if (held.kind === "tooLarge") {
        this.#drop(key);
        return await answer;
      }
      const given = held.give();
      const forget = (): void => {
        this.#drop(key);
        held.forget();
      };
      const lookAgain = (): void => {
        if (this.#wanted.delete(key) && given !== undefined && isCurrent(given)) this.#clock.after(this.#options.sharedMs, lookAgain);
        else forget();
      };
      const leftMs = begun + this.#options.sharedMs - this.#clock.now();
      if (held.isKept && leftMs > 0) this.#clock.after(leftMs, lookAgain);
      else forget();
      return given;
    } catch (error) {
      this.#drop(key); // Every waiting client gets the error.
      throw error;
    }
  }

  #drop(key: string): void {
    this.#shared.delete(key);
    this.#wanted.delete(key);
  }

  async #hold(answer: HttpAnswer | undefined): Promise<Shared> {
    const isKept = answer !== undefined && (this.#options.isKept ?? isSuccess)(answer.status);
    const body = answer?.body;
    if (answer === undefined || body === undefined || typeof body === "string" || body instanceof Uint8Array)
      return { kind: "answer", isKept, give: () => answer, forget: () => {} };
    const bytes = answer.bodyBytes ?? Number.POSITIVE_INFINITY;
    if (this.#bytes + bytes > this.#options.bytesMax) return { kind: "tooLarge" };
    const held = new Held((holds) => void (this.#bytes += holds ? bytes : -bytes));
    const forget = held.hold();
    try {
      const inMemory: HttpAnswer = { ...answer, body: await whole(body, bytes) };
      return { kind: "answer", isKept, give: () => ({ ...inMemory, onEnded: held.hold() }), forget };
    } catch (error) {
      forget();
      throw error;
    }
  }
}

function isSuccess(status: number): boolean {
  return status < 400;
}

/** Counts the holders of one answer. The answer is in memory from the first holder to the last. */
class Held {
  readonly #onChange: (isHeld: boolean) => void;
  #holders = 0;

  constructor(onChange: (isHeld: boolean) => void) {
    this.#onChange = onChange;
  }

  /** Returns a function that releases the hold, once. */
  hold(): () => void {
    let holds = true;
    this.#count(1);
    return () => {
      if (holds) this.#count(-1);
      holds = false;
    };
  }

  #count(more: 1 | -1): void {
    const before = this.#holders;
    this.#holders += more;
    if ((before === 0) !== (this.#holders === 0)) this.#onChange(this.#holders > 0);
  }
}

/** Throws when the body does not have exactly `bytes` bytes: `BrokenAnswer` if it has fewer. */
async function whole(body: AsyncIterable<Uint8Array>, bytes: number): Promise<Uint8Array> {
  const all = new Uint8Array(bytes);
  let at = 0;
  for await (const chunk of piecesOf(body, bytes)) {
    if (at + chunk.byteLength > bytes) throw new Error("an answer is longer than its announced size");
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  return all;
}
