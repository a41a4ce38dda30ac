/**
 * The canvas as a grid, at several sizes: who sees a part of it listens to the few cells that hold this part, and who
 * moves is told of in the cell it leaves and the one it enters. The size of a cell follows that of the view, so that
 * a view touches nine cells at most, however far it is zoomed out.
 */

import type { Point, Rectangle } from "../../shared/wire/positions.ts";

declare const brand: unique symbol;
/** `level/column/row` */
export type Cell = string & { readonly [brand]: true };
/** 0: the smallest cells; those of the next have twice the side. */
export type Level = number;

const SIDE_MIN = 64;
/** Cells as large as half of all there is: coordinates go to 2^48 either way. */
const LEVEL_MAX = 42;

/** The smallest cells of which two span the view: it then touches three each way at most. */
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
