/**
 * Divides the canvas into cells of several sizes. A client listens to the few cells that hold its view. A moving cursor
 * is sent to the cells that it leaves and enters. The size of a cell follows the size of the view, so a view touches at
 * most nine cells at any zoom.
 */

import { LazyMap } from "../../shared/collections/lazy-map.ts";
import { CURSOR, type ParticipantNumber, type PresenceDelta, type PresenceState } from "../../shared/wire/presence.ts";
import { decodePoint, type Point, type Rectangle } from "../../shared/wire/positions.ts";

declare const brand: unique symbol;
/** `level/column/row` */
export type Cell = string & { readonly [brand]: true };
/** Level 0 has the smallest cells. Each higher level doubles the side of a cell. */
export type Level = number;

const SIDE_MIN = 64;
/** A cell of this level covers half of the canvas: coordinates go to 2^48 in both directions. */
const LEVEL_MAX = 42;

/**
 * The level with the smallest cells that are at least half as large as the view. A view then touches at most three
 * cells in each direction.
 */
export function levelOf({ width, height }: Rectangle): Level {
  const halves = Math.max(width, height) / 2 / SIDE_MIN;
  return halves <= 1 ? 0 : Math.min(LEVEL_MAX, Math.ceil(Math.log2(halves)));
}

export function cellsOf(view: Rectangle): Cell[] {
  const level = levelOf(view);
  const side = sideOf(level);
  const cells: Cell[] = [];
  const [right, bottom] = [Math.floor((view.x + view.width) / side), Math.floor((view.y + view.height) / side)];
  for (let column = Math.floor(view.x / side); column <= right; column++) {
    for (let row = Math.floor(view.y / side); row <= bottom; row++) cells.push(cell(level, column, row));
  }
  return cells;
}

export function cellAt(level: Level, { x, y }: Point): Cell {
  const side = sideOf(level);
  return cell(level, Math.floor(x / side), Math.floor(y / side));
}

function sideOf(level: Level): number {
  return SIDE_MIN * 2 ** level;
}

function cell(level: Level, column: number, row: number): Cell {
  return `${level}/${column}/${row}` as Cell;
}

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

/** `point`: undefined when the participant removed its cursor. */
type Cursor = { readonly value: Uint8Array; readonly point: Point | undefined; readonly moved: number };

/**
 * The position of each participant's cursor in a room, and the time of its last move. A client that moves its view
 * receives the cursors that left the view in the meantime.
 */
export class Cursors {
  /** In the order of the last move: the newest last. */
  readonly #cursors = new LazyMap<ParticipantNumber, Cursor>();
  #version = 0;

  /** Increases with each delta. */
  get version(): number {
    return this.#version;
  }

  at(number: ParticipantNumber): Point | undefined {
    return this.#cursors.get(number)?.point;
  }

  receiveDelta({ snapshot, gone, states }: PresenceDelta): void {
    this.#version += 1;
    if (snapshot) this.#cursors.clear();
    for (const number of gone) this.#cursors.delete(number);
    for (const { number, fields } of states) {
      const value = fields.find(({ name }) => name === CURSOR)?.value;
      if (value === undefined) continue;
      this.#cursors.delete(number);
      this.#cursors.set(number, { value: value.slice(), point: decodePoint(value), moved: this.#version });
    }
  }

  /** All cursors that moved after the version. */
  since(version: number): PresenceState[] {
    const states: PresenceState[] = [];
    for (const [number, { value, moved }] of this.#cursors) if (moved > version) states.push({ number, fields: [{ name: CURSOR, value }] });
    return states;
  }
}
