/** A clock that the test turns. Whatever was promised by then has happened before it goes on. */

import type { Millis } from "../../shared/ids.ts";
import type { Clock } from "../ports.ts";

export class FakeClock implements Clock {
  #now = 1_700_000_000_000;
  #order = 0;
  readonly #timers = new Map<number, { readonly at: number; readonly run: () => void }>();

  now(): Millis {
    return this.#now as Millis;
  }

  after(delayMs: number, run: () => void): () => void {
    const id = ++this.#order;
    this.#timers.set(id, { at: this.#now + Math.max(0, delayMs), run });
    return () => this.#timers.delete(id);
  }

  soon(run: () => void): void {
    this.after(0, run);
  }

  /** Timers that keep a process alive. */
  get pending(): number {
    return this.#timers.size;
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      const { at, run } = this.#timers.get(next)!;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, at);
      run();
      await settled();
    }
    this.#now = end;
  }

  /** Earliest first; of those at one time, the one set first. */
  #next(end: number): number | undefined {
    let found: number | undefined;
    for (const [id, { at }] of this.#timers) if (at <= end && (found === undefined || at < this.#timers.get(found)!.at)) found = id;
    return found;
  }
}

/** Enough for a promise that waits for a few others. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await undefined;
}
