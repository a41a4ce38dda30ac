/**
 * What those who are told at one pace are still to be told: news of any number become one. Moving cursors are told by
 * cell: to whoever looks at a cell that the cursor was in since the last time, so that none stays where it was left.
 */

import { SeldomMap, SeldomSet } from "../../shared/seldom.ts";
import {
  CURSOR,
  type Participant,
  type ParticipantNumber,
  type PresenceField,
  type PresenceNews,
  type PresenceState,
  VIEWPORT,
} from "../../shared/wire/presence.ts";
import { decodePoint, type Point } from "../../shared/wire/positions.ts";
import { type Cell, cellAt, type Level } from "./cells.ts";

/** Who listens, by cell. Several may look at one. */
export class Viewers {
  readonly #cells = new SeldomMap<Cell, number>();
  readonly #levels = new SeldomMap<Level, number>();

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

function count<Key>(counts: SeldomMap<Key, number>, key: Key, by: number): void {
  const sum = (counts.get(key) ?? 0) + by;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}

/** `everybody`: for the whole lane; the moves: `everywhere` for those without a view, `near` for those who look there. */
export type LaneNews = {
  readonly everybody: PresenceNews | undefined;
  readonly everywhere: readonly PresenceState[];
  readonly near: ReadonlyMap<Cell, readonly PresenceState[]>;
};

/** How much the lane is told. */
export type LaneDepth = "all" | "without-viewports" | "members-only";

/** Where a cursor was since the lane was last told, and its newest place. Undefined: taken back. */
type Move = { value: Uint8Array | undefined; readonly points: Point[] };

export class Lane {
  readonly viewers = new Viewers();
  readonly #present = new SeldomMap<ParticipantNumber, Participant>();
  readonly #gone = new SeldomSet<ParticipantNumber>();
  readonly #fields = new SeldomMap<ParticipantNumber, Map<string, Uint8Array>>();
  readonly #moves = new SeldomMap<ParticipantNumber, Move>();

  get isEmpty(): boolean {
    return this.#present.size === 0 && this.#gone.size === 0 && this.#fields.size === 0 && this.#moves.size === 0;
  }

  /** `at`: where each pointed before these news, which are not whole. */
  receiveNews(news: PresenceNews, at: (number: ParticipantNumber) => Point | undefined, depth: LaneDepth): void {
    for (const participant of news.present) this.#present.set(participant.number, participant);
    for (const number of news.gone) {
      this.#present.delete(number);
      this.#fields.delete(number);
      this.#moves.delete(number);
      this.#gone.add(number);
    }
    if (depth === "members-only") return;
    for (const { number, fields } of news.states)
      for (const field of fields) if (field.name !== VIEWPORT || depth === "all") this.#receiveField(number, field, at(number));
  }

  take(): LaneNews {
    const [present, gone] = [[...this.#present.values()], [...this.#gone]];
    const states = [...this.#fields]
      .filter(([, fields]) => fields.size > 0)
      .map(([number, fields]) => ({ number, fields: [...fields].map(([name, value]) => ({ name, value })) }));
    const everybody = present.length + gone.length + states.length === 0 ? undefined : { whole: false, present, gone, states };
    const everywhere: PresenceState[] = [];
    for (const [number, { value }] of this.#moves) if (value !== undefined) everywhere.push({ number, fields: [{ name: CURSOR, value }] });
    const near = this.#byCell(everywhere);
    this.forget();
    return { everybody, everywhere, near };
  }

  /** All there is was told otherwise. */
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

  /** False: it was taken back, which is told to everybody, as any field. */
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
