/**
 * Checks the edits of a room against the order in which the first receiver saw them. It throws unless every member
 * receives every seq in turn, every edit once and the same edit for each seq.
 */

import type { ClientId } from "../../shared/ids.ts";
import type { CommittedEdits } from "../../shared/wire/frames.ts";

/** Consecutive edits in the room's order. */
export type OrderedEdits = { readonly firstSeq: number; readonly writers: readonly number[]; readonly counters: readonly number[] };

export class RoomJudge {
  /** By seq - 1. */
  readonly #writers: number[] = [];
  readonly #counters: number[] = [];
  /** Last ordered counter, by writer. */
  readonly #ordered: number[] = [];
  /** By writer. */
  readonly #clients = new Map<ClientId, number>();
  /** Last received seq, by member. */
  readonly #positions: number[] = [];

  addMember(): void {
    this.#positions.push(0);
  }

  /** Numbers the writers in the order of the calls. */
  addWriter(client: ClientId): void {
    this.#clients.set(client, this.#ordered.length);
    this.#ordered.push(0);
  }

  get head(): number {
    return this.#writers.length;
  }

  positionOf(member: number): number {
    return this.#positions[member]!;
  }

  /** The last seq that every member has received. */
  everywhere(): number {
    return Math.min(...this.#positions);
  }

  /** Counted from the order itself, independently of the checks on the way. */
  distinctEdits(): number {
    const perWriter = this.#ordered.map(() => new Set<number>());
    this.#writers.forEach((writer, index) => perWriter[writer]!.add(this.#counters[index]!));
    return perWriter.reduce((sum, counters) => sum + counters.size, 0);
  }

  stretchOf({ firstSeq, edits }: CommittedEdits): OrderedEdits {
    return {
      firstSeq,
      writers: edits.map(({ client }) => this.#clients.get(client) ?? fail(`an edit of nobody in the room: ${client}`)),
      counters: edits.map(({ counter }) => counter),
    };
  }

  receive(member: number, stretch: OrderedEdits): void {
    if (stretch.firstSeq !== this.#positions[member]! + 1)
      fail(`member ${member} got seq ${stretch.firstSeq} after ${this.#positions[member]}`);
    for (let index = 0; index < stretch.writers.length; index++)
      this.#place(stretch.firstSeq + index, stretch.writers[index]!, stretch.counters[index]!);
    this.#positions[member] = stretch.firstSeq + stretch.writers.length - 1;
  }

  #place(seq: number, writer: number, counter: number): void {
    if (seq <= this.#writers.length) {
      if (this.#writers[seq - 1] !== writer || this.#counters[seq - 1] !== counter)
        fail(`seq ${seq} is two edits: ${this.#writers[seq - 1]}/${this.#counters[seq - 1]} and ${writer}/${counter}`);
      return;
    }
    if (counter !== this.#ordered[writer]! + 1)
      fail(`seq ${seq} is edit ${counter} of writer ${writer}, whose last was ${this.#ordered[writer]}`);
    this.#ordered[writer] = counter;
    this.#writers.push(writer);
    this.#counters.push(counter);
  }
}

function fail(reason: string): never {
  throw new Error(reason);
}
