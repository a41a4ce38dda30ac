/**
 * Collects the presence that a lane has not received yet: several deltas become one. A cursor is sent to each cell that it was in since the
 * last flush, so that no client shows it where it no longer is.
 */

import { LazyMap, LazySet } from "../../shared/collections/lazy-map.ts";
import {
  CURSOR,
  type ParticipantEntry,
  type ParticipantNumber,
  type PresenceField,
  type PresenceDelta,
  type PresenceState,
  VIEWPORT,
} from "../../shared/wire/presence.ts";
import { decodePoint, type Point } from "../../shared/wire/positions.ts";
import { type Cell, cellAt, type Level } from "./cells.ts";
import type { LaneDepth } from "./shed-ladder.ts";

/** Counts the viewers of each cell. */
export class Viewers {
  readonly #cells = new LazyMap<Cell, number>();
  readonly #levels = new LazyMap<Level, number>();

  get levels(): Iterable<Level> {
    return this.#levels.keys();
  }

  has(cell: Cell): boolean {
    return this.#cells.has(cell);
  }

  add(level: Level, cells: readonly Cell[]): void {
    count(this.#levels, level, 1);
    for (const cell of cells) count(this.#cells, cell, 1);
  }

  remove(level: Level, cells: readonly Cell[]): void {
    count(this.#levels, level, -1);
    for (const cell of cells) count(this.#cells, cell, -1);
  }
}

function count<Key>(counts: LazyMap<Key, number>, key: Key, by: number): void {
  const sum = (counts.get(key) ?? 0) + by;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}

/**
 * `everybody`: for the whole lane. `everywhere`: moves for viewers without a view. `near`: moves for viewers of a cell.
 */
export type LaneFlush = {
  readonly everybody: PresenceDelta | undefined;
  readonly everywhere: readonly PresenceState[];
  readonly near: ReadonlyMap<Cell, readonly PresenceState[]>;
};

/** Places of a cursor since the last flush, and its newest value. Undefined: the participant removed the cursor. */
type Move = { value: Uint8Array | undefined; readonly points: Point[] };

export class Lane {
  readonly viewers = new Viewers();
  readonly #present = new LazyMap<ParticipantNumber, ParticipantEntry>();
  readonly #gone = new LazySet<ParticipantNumber>();
  readonly #fields = new LazyMap<ParticipantNumber, Map<string, Uint8Array>>();
  readonly #moves = new LazyMap<ParticipantNumber, Move>();

  get isEmpty(): boolean {
    return this.#present.size === 0 && this.#gone.size === 0 && this.#fields.size === 0 && this.#moves.size === 0;
  }

  /** `at`: the place of each cursor before this delta. The delta is not a snapshot. */
  receiveDelta(delta: PresenceDelta, at: (number: ParticipantNumber) => Point | undefined, depth: LaneDepth): void {
    for (const participant of delta.present) this.#present.set(participant.number, participant);
    for (const number of delta.gone) {
      this.#present.delete(number);
      this.#fields.delete(number);
      this.#moves.delete(number);
      this.#gone.add(number);
    }
    if (depth === "members-only") return;
    for (const { number, fields } of delta.states)
      for (const field of fields) if (field.name !== VIEWPORT || depth === "all") this.#receiveField(number, field, at(number));
  }

  take(): LaneFlush {
    const [present, gone] = [[...this.#present.values()], [...this.#gone]];
    const states = [...this.#fields]
      .filter(([, fields]) => fields.size > 0)
      .map(([number, fields]) => ({ number, fields: [...fields].map(([name, value]) => ({ name, value })) }));
    const everybody = present.length + gone.length + states.length === 0 ? undefined : { snapshot: false, present, gone, states };
    const everywhere: PresenceState[] = [];
    for (const [number, { value }] of this.#moves) if (value !== undefined) everywhere.push({ number, fields: [{ name: CURSOR, value }] });
    const near = this.#byCell(everywhere);
    this.forget();
    return { everybody, everywhere, near };
  }

  /** Call when the lane has received a snapshot instead. */
  forget(): void {
    this.#present.clear();
    this.#gone.clear();
    this.#fields.clear();
    this.#moves.clear();
  }

  #receiveField(number: ParticipantNumber, { name, value }: PresenceField, from: Point | undefined): void {
    if (name === CURSOR && this.#receiveCursor(number, value, from)) return;
    const fields = this.#fields.get(number) ?? new Map<string, Uint8Array>();
    this.#fields.set(number, fields.set(name, value.slice()));
  }

  /** False: the cursor was removed. The whole lane receives that like any other field. */
  #receiveCursor(number: ParticipantNumber, value: Uint8Array, from: Point | undefined): boolean {
    const to = decodePoint(value);
    const move = this.#moves.get(number) ?? { value: undefined, points: from === undefined ? [] : [from] };
    this.#moves.set(number, move);
    move.value = to === undefined ? undefined : value.slice();
    if (to === undefined) return false;
    move.points.push(to);
    this.#fields.get(number)?.delete(CURSOR);
    return true;
  }

  #byCell(states: readonly PresenceState[]): Map<Cell, PresenceState[]> {
    const near = new Map<Cell, PresenceState[]>();
    for (const level of this.viewers.levels) {
      for (const state of states) {
        const cells = this.#moves.get(state.number)!.points.map((point) => cellAt(level, point));
        cells.forEach((cell, index) => {
          if (cells.indexOf(cell) < index || !this.viewers.has(cell)) return;
          const there = near.get(cell);
          if (there === undefined) near.set(cell, [state]);
          else there.push(state);
        });
      }
    }
    return near;
  }
}
