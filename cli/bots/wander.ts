/** Positions of a bot's pointer: it moves to a random place at the speed of a hand and then rests. Deterministic. */

import type { Prng } from "../../shared/collections/prng.ts";

type WanderOptions = {
  /** Maximum distance from the centre. */
  readonly reach: number;
  /** Share of the time in which the pointer moves, in (0, 1]. */
  readonly activeShare: number;
};

type Place = { readonly x: number; readonly y: number };

const TRIP_MS_MIN = 900;
const TRIP_MS_SPREAD = 1_600;

export class Wander {
  readonly #options: WanderOptions;
  readonly #prng: Prng;
  #from: Place;
  #to: Place;
  #startsAt: number;
  #arrivesAt: number;

  constructor(options: WanderOptions, prng: Prng, now: number) {
    this.#options = options;
    this.#prng = prng;
    this.#from = this.#to = this.#somewhere();
    this.#startsAt = this.#arrivesAt = now;
  }

  /** Returns the position at this time, or undefined while the pointer rests. */
  step(now: number): Place | undefined {
    if (now >= this.#arrivesAt && this.#from !== this.#to) {
      this.#from = this.#to;
      return this.#to;
    }
    if (now >= this.#arrivesAt) this.#setOut(now);
    if (now < this.#startsAt) return undefined;
    const done = eased((now - this.#startsAt) / (this.#arrivesAt - this.#startsAt));
    return { x: this.#from.x + (this.#to.x - this.#from.x) * done, y: this.#from.y + (this.#to.y - this.#from.y) * done };
  }

  #setOut(now: number): void {
    const tripMs = TRIP_MS_MIN + this.#prng.unit() * TRIP_MS_SPREAD;
    const restMs = tripMs * (1 / this.#options.activeShare - 1) * 2 * this.#prng.unit();
    this.#to = this.#somewhere();
    this.#startsAt = now + restMs;
    this.#arrivesAt = this.#startsAt + tripMs;
  }

  /** Uniform over the disc. */
  #somewhere(): Place {
    const [angle, distance] = [this.#prng.unit() * 2 * Math.PI, Math.sqrt(this.#prng.unit()) * this.#options.reach];
    return { x: Math.round(Math.cos(angle) * distance), y: Math.round(Math.sin(angle) * distance) };
  }
}

function eased(part: number): number {
  return part * part * (3 - 2 * part);
}
