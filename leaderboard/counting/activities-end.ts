/**
 * Confirms that new activities get stream sequences above what is counted. A stream that was restored from an older backup
 * ends before: its next activities would get numbers that are counted already, and would never count. The stream is then
 * made to go on after the counted number.
 */

import type { Millis } from "../../shared/ids.ts";

/** `confirmed`: the waiter may count. `skip`: make the stream go on after `through`. */
export type ActivitiesEndEffect<Waiter> =
  | { readonly kind: "read-activities-end" | "read-activities-now" }
  | { readonly kind: "skip-activities"; readonly end: number; readonly through: number }
  | { readonly kind: "confirmed"; readonly waiter: Waiter };

type State =
  | { readonly kind: "idle" | "asking" }
  | { readonly kind: "waiting"; readonly until: Millis }
  | { readonly kind: "asking-again" }
  | { readonly kind: "reading" | "skipping"; readonly through: number };

/** A JetStream leader that was just elected may not know its own end, so it is asked again after this time. */
const ELECTED_MS = 1_000;

export class ActivitiesEnd<Waiter> {
  #end = 0;
  #state: State = { kind: "idle" };
  #waiting: { readonly waiter: Waiter; readonly counted: number }[] = [];
  /** Asked again for: those who began to wait before the first answer. */
  #asked = new Set<Waiter>();

  /** When `tick` has to be called. */
  get dueAt(): Millis | undefined {
    return this.#state.kind === "waiting" ? this.#state.until : undefined;
  }

  confirm(waiter: Waiter, counted: number): ActivitiesEndEffect<Waiter>[] {
    if (counted <= this.#end) return [{ kind: "confirmed", waiter }];
    this.#waiting.push({ waiter, counted });
    return this.#state.kind === "idle" ? this.#ask() : [];
  }

  receiveEnd(end: number, now: Millis): ActivitiesEndEffect<Waiter>[] {
    const confirmed = this.#raise(end);
    if (this.#waiting.length === 0) return this.#rest(confirmed);
    if (this.#state.kind === "asking") {
      this.#asked = new Set(this.#waiting.map(({ waiter }) => waiter));
      this.#state = { kind: "waiting", until: (now + ELECTED_MS) as Millis };
      return confirmed;
    }
    const askedTwice = this.#waiting.filter(({ waiter }) => this.#asked.has(waiter));
    if (askedTwice.length === 0) return [...confirmed, ...this.#ask()];
    this.#state = { kind: "reading", through: Math.max(...askedTwice.map(({ counted }) => counted)) };
    return [...confirmed, { kind: "read-activities-now" }]; // What the stream still has for other rooms is counted first.
  }

  tick(now: Millis): ActivitiesEndEffect<Waiter>[] {
    if (this.#state.kind !== "waiting" || now < this.#state.until) return [];
    this.#state = { kind: "asking-again" };
    return [{ kind: "read-activities-end" }];
  }

  receiveReadNow(): ActivitiesEndEffect<Waiter>[] {
    if (this.#state.kind !== "reading") return [];
    const { through } = this.#state;
    this.#state = { kind: "skipping", through };
    return [{ kind: "skip-activities", end: this.#end, through }];
  }

  receiveSkipped(through: number): ActivitiesEndEffect<Waiter>[] {
    const confirmed = this.#raise(through);
    return this.#waiting.length === 0 ? this.#rest(confirmed) : [...confirmed, ...this.#ask()];
  }

  #ask(): ActivitiesEndEffect<Waiter>[] {
    this.#state = { kind: "asking" };
    return [{ kind: "read-activities-end" }];
  }

  #rest(effects: ActivitiesEndEffect<Waiter>[]): ActivitiesEndEffect<Waiter>[] {
    this.#state = { kind: "idle" };
    return effects;
  }

  #raise(end: number): ActivitiesEndEffect<Waiter>[] {
    this.#end = Math.max(this.#end, end);
    const confirmed = this.#waiting.filter(({ counted }) => counted <= this.#end);
    this.#waiting = this.#waiting.filter(({ counted }) => counted > this.#end);
    return confirmed.map(({ waiter }) => ({ kind: "confirmed", waiter }));
  }
}
