/**
 * Participants on a canvas, for experiments without sockets: their cursors, their views, and the moves of each tick.
 */

import { Prng } from "../shared/collections/prng.ts";
import { encodePoint, type Point, type Rectangle } from "../shared/wire/positions.ts";
import { CURSOR, type PresenceDelta } from "../shared/wire/presence.ts";

export type CanvasScene = {
  readonly participants: number;
  /** Participants that move at every tick. */
  readonly moving: number;
  readonly canvas: Pick<Rectangle, "width" | "height">;
  readonly view: Pick<Rectangle, "width" | "height">;
  readonly seed: number;
};

const STEP = 25;

export class CanvasParticipants {
  readonly #scene: CanvasScene;
  readonly #random: Prng;
  readonly #points: Point[];

  constructor(scene: CanvasScene) {
    this.#scene = scene;
    this.#random = new Prng(scene.seed);
    this.#points = Array.from({ length: scene.participants }, () => ({
      x: this.below(scene.canvas.width),
      y: this.below(scene.canvas.height),
    }));
  }

  below(limit: number): number {
    return this.#random.below(Math.max(1, limit));
  }

  get count(): number {
    return this.#points.length;
  }

  pointOf(index: number): Point {
    return this.#points[index]!;
  }

  viewAround({ x, y }: Point): Rectangle {
    const { view } = this.#scene;
    return { x: x - Math.floor(view.width / 2), y: y - Math.floor(view.height / 2), ...view };
  }

  /** Moves the participants and returns the delta of the tick. */
  move(): PresenceDelta {
    const states = Array.from({ length: this.#scene.moving }, (_, index) => {
      const from = this.pointOf(index);
      const to = { x: from.x + this.below(2 * STEP) - STEP, y: from.y + this.below(2 * STEP) - STEP };
      this.#points[index] = to;
      return { number: index + 1, fields: [{ name: CURSOR, value: encodePoint(to) }] };
    });
    return { snapshot: false, present: [], gone: [], states };
  }
}
