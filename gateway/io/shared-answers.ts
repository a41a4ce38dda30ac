/**
 * What a crowd asks for at once is asked once: everybody who asks for the same thing while the answer is on its way,
 * or within `sharedMs` of the first, gets the same answer; and after that, as long as it is known to be what would be
 * answered now and somebody has asked for it in the last `sharedMs`. Held whole in memory, within a bound on all of them
 * together, which an answer counts towards until the slowest of its readers has it; one too large for it goes to the
 * first who asked alone, as it comes.
 */

import type { Clock } from "../../shared/clock.ts";
import type { HttpAnswer } from "./http-routes.ts";

export type SharedAnswersOptions = {
  /** For so long after it was asked for; no more than an answer may lag behind. 0: only while it is on its way. */
  readonly sharedMs: number;
  readonly bytesMax: number;
};

type Fetch = () => Promise<HttpAnswer | undefined>;
/** Whether asking again would bring the same. */
type IsCurrent = (answer: HttpAnswer) => boolean;
/** `give`: to one more reader. `forget`: to nobody any more. `tooLarge`: each has to ask for itself. */
type Shared =
  | { readonly kind: "answer"; readonly isKept: boolean; readonly give: () => HttpAnswer | undefined; readonly forget: () => void }
  | { readonly kind: "tooLarge" };

export class SharedAnswers {
  readonly #options: SharedAnswersOptions;
  readonly #clock: Clock;
  readonly #shared = new Map<string, Promise<Shared>>();
  /** What was asked for again since it was looked at last. */
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
      this.#drop(key); // Those who wait get it too.
      throw error;
    }
  }

  #drop(key: string): void {
    this.#shared.delete(key);
    this.#wanted.delete(key);
  }

  async #hold(answer: HttpAnswer | undefined): Promise<Shared> {
    const isKept = answer !== undefined && answer.status < 400; // Who asks after an error may fare better.
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

/** Counts who holds something: from the first to come to the last to go it is in memory. */
class Held {
  readonly #onChange: (isHeld: boolean) => void;
  #holders = 0;

  constructor(onChange: (isHeld: boolean) => void) {
    this.#onChange = onChange;
  }

  /** What it gives ends it, once. */
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
