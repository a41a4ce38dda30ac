/**
 * Follows one room through the eyes of all its members, and holds what each gets against the order that the
 * first to see it got: every seq in turn, every edit once, the same for all. Whatever is not so is thrown.
 */

import type { ClientId } from "../../shared/ids.ts";
import type { CommittedEdits } from "../../shared/wire/frames.ts";

/** Edits that stand one behind the other, as the room has ordered them. */
export type Stretch = { readonly firstSeq: number; readonly writers: readonly number[]; readonly counters: readonly number[] };

export class RoomJudge {
  /** By seq - 1. */
  readonly #writers: number[] = [];
  readonly #counters: number[] = [];
  /** By writer: the last counter ordered. */
  readonly #ordered: number[] = [];
  /** By writer. */
  readonly #clients = new Map<ClientId, number>();
  /** By member: the last seq it got. */
  readonly #positions: number[] = [];

  addMember(): void {
    this.#positions.push(0);
  }

  /** Writers are numbered in the order they are added. */
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

  /** How far every member has come. */
  everywhere(): number {
    return Math.min(...this.#positions);
  }

  /** Counted from the order itself, not from the counters that were checked on the way. */
  distinctEdits(): number {
    const perWriter = this.#ordered.map(() => new Set<number>());
    this.#writers.forEach((writer, index) => perWriter[writer]!.add(this.#counters[index]!));
    return perWriter.reduce((sum, counters) => sum + counters.size, 0);
  }

  stretchOf({ firstSeq, edits }: CommittedEdits): Stretch {
    return {
      firstSeq,
      writers: edits.map(({ client }) => this.#clients.get(client) ?? fail(`an edit of nobody in the room: ${client}`)),
      counters: edits.map(({ counter }) => counter),
    };
  }

  receive(member: number, stretch: Stretch): void {
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
