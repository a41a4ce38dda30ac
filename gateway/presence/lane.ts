/**
 * Collects the presence that a lane has not received yet, so that several deltas become one. A cursor is sent to each
 * cell that it was in since the last flush. So no client shows the cursor at a former place.
 */

import { LazyMap, LazySet } from "../../shared/collections/lazy-map.ts";
import { decodePoint, type Point } from "../../shared/wire/positions.ts";
import {
  CURSOR,
  type ParticipantEntry,
  type ParticipantNumber,
  type PresenceDelta,
  type PresenceField,
  type PresenceState,
  VIEWPORT,
} from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { type Cell, cellAt, Viewers } from "./cells.ts";
import type { LaneDepth } from "./shed-ladder.ts";

/** `everybody`: to all of the lane. `everywhere`: moves, to viewers without a view. `near`: moves, to viewers of a cell. */
type LaneFlush = {
  readonly everybody: PresenceDelta | undefined;
  readonly everywhere: readonly PresenceState[];
  readonly near: ReadonlyMap<Cell, readonly PresenceState[]>;
};

/** Places of a cursor since the last flush, and its newest value. Undefined: the participant removed the cursor. */
type Move = { value: Uint8Array | undefined; readonly points: Point[] };

export class Lane {
  readonly viewers = new Viewers();
  /** Recipients that have moved their view since the last flush, and lack cursors in it. */
  readonly turned = new LazySet<ConnectionId>();
  readonly #present = new LazyMap<ParticipantNumber, ParticipantEntry>();
  readonly #gone = new LazySet<ParticipantNumber>();
  readonly #fields = new LazyMap<ParticipantNumber, Map<string, Uint8Array>>();
  readonly #moves = new LazyMap<ParticipantNumber, Move>();

  get hasMembers(): boolean {
    return this.#present.size > 0 || this.#gone.size > 0;
  }

  get hasStates(): boolean {
    return this.#fields.size > 0 || this.#moves.size > 0 || this.turned.size > 0;
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
    for (const { number, fields } of delta.states)
      for (const field of fields) if (field.name !== VIEWPORT || depth === "all") this.#receiveField(number, field, at(number));
  }

  /** Undefined: there are none. */
  takeMembers(): PresenceDelta | undefined {
    if (!this.hasMembers) return undefined;
    const members = { snapshot: false, present: [...this.#present.values()], gone: [...this.#gone], states: [] };
    this.#present.clear();
    this.#gone.clear();
    return members;
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
    this.turned.clear();
  }

  #receiveField(number: ParticipantNumber, { name, value }: PresenceField, from: Point | undefined): void {
    if (name === CURSOR && this.#receiveCursor(number, value, from)) return;
    const fields = this.#fields.get(number) ?? new Map<string, Uint8Array>();
    this.#fields.set(number, fields.set(name, value.slice()));
  }

  /** False: the cursor was removed. The removal goes to all of the lane, like any other field. */
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
