/**
 * The edits of a room that one member has received. It throws unless they arrive as the server promises: each edit once,
 * each writer's in order and, on a server with seqs, every seq in turn.
 */

import type { Keystrokes } from "../../cli/bench/keystroke.ts";

export class ReceivedEdits {
  /** Names the member in errors. */
  readonly #member: string;
  #seq = 0;
  /** Last received counter, by writer. */
  readonly #counters: number[] = [];

  constructor(member: string) {
    this.#member = member;
  }

  get seq(): number {
    return this.#seq;
  }

  /** `writer`: the index in the room. */
  counterOf(writer: number): number {
    return this.#counters[writer] ?? 0;
  }

  /** `firstSeq`: 0 for a server without seqs. */
  receive(firstSeq: number, edits: readonly Keystrokes[]): void {
    if (firstSeq > 0 && firstSeq !== this.#seq + 1) throw new Error(`${this.#member} received seq ${firstSeq} after ${this.#seq}`);
    for (const { writer, counter, count } of edits) {
      const expected = this.counterOf(writer - 1) + 1;
      if (counter !== expected) throw new Error(`${this.#member} received edit ${counter} of writer ${writer - 1} instead of ${expected}`);
      this.#counters[writer - 1] = counter + count - 1;
      if (firstSeq > 0) this.#seq += count;
    }
  }

  /**
   * Returns whether the ack is new. A gateway that waits for an ack sends the edits again after a second, and the owner
   * acknowledges them again (WIRE35).
   */
  receiveAck(firstSeq: number, edits: Keystrokes): boolean {
    if (firstSeq + edits.count - 1 <= this.#seq && edits.counter + edits.count - 1 <= this.counterOf(edits.writer - 1)) return false;
    this.receive(firstSeq, [edits]);
    return true;
  }
}
