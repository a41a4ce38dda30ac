/**
 * The cursor moves of one person of `coroom bench`. Each move goes to a point that the person used long ago, so that
 * another person's client shows which move it received. Presence is state: moves may be replaced by later ones.
 */

import type { Point } from "../../client/index.ts";

/** Side of the square of all points, which is everybody's viewport. Large rooms leave out what is outside of it. */
export const SIDE = 64;
const POINTS = SIDE ** 2;

export class CursorMoves {
  readonly #movedAt = new Float64Array(POINTS);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Returns the point to move to. */
  move(now: number): Point {
    const place = this.#count % POINTS;
    this.#movedAt[place] = now;
    this.#count += 1;
    return { x: place % SIDE, y: Math.floor(place / SIDE) };
  }

  /** The move that ended at the point, from 1, and its time. Undefined: there was none. */
  moveTo({ x, y }: Point): { readonly move: number; readonly at: number } | undefined {
    const place = y * SIDE + x;
    if (place < 0 || place >= POINTS) return undefined;
    const rounds = Math.floor((this.#count - 1 - place) / POINTS);
    return rounds < 0 ? undefined : { move: rounds * POINTS + place + 1, at: this.#movedAt[place]! };
  }
}
