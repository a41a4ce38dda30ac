/**
 * What a crowd asks for at once is asked once: everybody who asks for the same thing while the answer is on its way,
 * or within `sharedMs` of the first, gets the same answer. Held whole in memory, within a bound on all of them
 * together; an answer too large for it goes to the first who asked alone, as it comes.
 */

import type { Clock } from "../../shared/clock.ts";
import type { HttpAnswer } from "./http-routes.ts";

export type SharedAnswersOptions = {
  /** For so long after it was asked for; no more than an answer may lag behind. 0: only while it is on its way. */
  readonly sharedMs: number;
  readonly bytesMax: number;
};

type Fetch = () => Promise<HttpAnswer | undefined>;
/** `tooLarge`: each has to ask for itself. */
type Shared = { readonly kind: "answer"; readonly answer: HttpAnswer | undefined } | { readonly kind: "tooLarge" };

export class SharedAnswers {
  readonly #options: SharedAnswersOptions;
  readonly #clock: Clock;
  readonly #shared = new Map<string, Promise<Shared>>();
  #bytes = 0;

  constructor(options: SharedAnswersOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  async get(key: string, fetch: Fetch): Promise<HttpAnswer | undefined> {
    const underWay = this.#shared.get(key);
    if (underWay === undefined) return this.#begin(key, fetch);
    const shared = await underWay;
    return shared.kind === "answer" ? shared.answer : fetch();
  }

  async #begin(key: string, fetch: Fetch): Promise<HttpAnswer | undefined> {
    const begun = this.#clock.now();
    const answer = fetch();
    const shared = answer.then((given) => this.#hold(given));
    this.#shared.set(key, shared);
    try {
      const held = await shared;
      if (held.kind === "tooLarge") {
        this.#shared.delete(key);
        return await answer;
      }
      this.#forgetLater(key, held.answer, begun + this.#options.sharedMs - this.#clock.now());
      return held.answer;
    } catch (error) {
      this.#shared.delete(key); // Those who wait get it too.
      throw error;
    }
  }

  async #hold(answer: HttpAnswer | undefined): Promise<Shared> {
    const body = answer?.body;
    if (answer === undefined || body === undefined || typeof body === "string" || body instanceof Uint8Array) return { kind: "answer", answer };
    const bytes = answer.bodyBytes ?? Number.POSITIVE_INFINITY;
    if (this.#bytes + bytes > this.#options.bytesMax) return { kind: "tooLarge" };
    this.#bytes += bytes;
    try {
      return { kind: "answer", answer: { ...answer, body: await whole(body, bytes) } };
    } catch (error) {
      this.#bytes -= bytes;
      throw error;
    }
  }

  /** An error is not kept: who asks next may fare better. */
  #forgetLater(key: string, answer: HttpAnswer | undefined, delayMs: number): void {
    const forget = (): void => {
      this.#shared.delete(key);
      if (answer?.body instanceof Uint8Array) this.#bytes -= answer.body.byteLength;
    };
    if (delayMs <= 0 || answer === undefined || answer.status >= 400) forget();
    else this.#clock.after(delayMs, forget);
  }
}

/** Throws when there are other than `bytes`. */
async function whole(body: AsyncIterable<Uint8Array>, bytes: number): Promise<Uint8Array> {
  const all = new Uint8Array(bytes);
  let at = 0;
  for await (const chunk of body) {
    if (at + chunk.byteLength > bytes) throw new Error("an answer is longer than it said");
    all.set(chunk, at);
    at += chunk.byteLength;
  }
  if (at < bytes) throw new Error("an answer broke off");
  return all;
}
