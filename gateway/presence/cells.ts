/**
 * Divides the canvas into cells of several sizes. A client listens to the few cells that hold its view. A moving cursor
 * is sent to the cells that it leaves and enters. The size of a cell follows the size of the view, so a view touches at
 * most nine cells, however far it is zoomed out.
 */

import type { Point, Rectangle } from "../../shared/wire/positions.ts";

declare const brand: unique symbol;
/** `level/column/row` */
export type Cell = string & { readonly [brand]: true };
/** Level 0 has the smallest cells. Each higher level doubles the side of a cell. */
export type Level = number;

const SIDE_MIN = 64;
/** A cell of this level covers half of the canvas: coordinates go to 2^48 in both directions. */
const LEVEL_MAX = 42;

/**
 * The level with the smallest cells of which two span the view, so that a view touches at most three cells in each
 * direction.
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
