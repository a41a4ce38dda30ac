/**
 * What this gateway leaves out under pressure, one thing after the other, in a fixed order: spectators first, edits
 * never. It goes down the ladder as long as it is under pressure, and up again step by step once it has been calm.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Pace, Paces } from "../presence/lanes.ts";

/** Of the last moments. */
export type Pressure = {
  /** How late the event loop comes to what is due. */
  readonly delayMs: number;
  /** Waiting for clients that have not read it yet, all together. */
  readonly outboundBytes: number;
  /** How long what is said on NATS takes to get there and back. */
  readonly natsLagMs: number;
};

/** Each is what counts as pressure from there on; calm is below half of all of them. */
export type ShedOptions = { readonly shedDelayMsMin: number; readonly shedOutboundBytesMin: number; readonly shedNatsLagMsMin: number; readonly shedCalmMs: number };

export type ShedCause = "delay" | "outbound" | "nats-lag" | "calm";
export type ShedChange = { readonly from: number; readonly to: number; readonly cause: ShedCause };

const ROOM_PACE: Pace = { everyMs: 0, depth: "all" };
const SPECTATORS_PACE: Pace = { everyMs: 200, depth: "all" };
const SPECTATORS_MEMBERS: Pace = { everyMs: 200, depth: "members-only" };

/** What is told to whom, by level: each leaves out one thing more. */
const LADDER: readonly Paces[] = [
  { editors: ROOM_PACE, spectators: SPECTATORS_PACE },
  // 1: spectators five times a second, in small rooms too. The same as above: only there all are told at the room's pace.
  { editors: ROOM_PACE, spectators: SPECTATORS_PACE },
  // 2: spectators are told who comes and goes.
  { editors: ROOM_PACE, spectators: SPECTATORS_MEMBERS },
  // 3: nobody is told where others look.
  { editors: { everyMs: 0, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  // 4 and 5: editors ten, then five times a second.
  { editors: { everyMs: 100, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  { editors: { everyMs: 200, depth: "without-viewports" }, spectators: SPECTATORS_MEMBERS },
  // 6: everybody is told who comes and goes.
  { editors: { everyMs: 200, depth: "members-only" }, spectators: SPECTATORS_MEMBERS },
];

export const SHED_LEVEL_MAX = LADDER.length - 1;

export function pacesOf(level: number): Paces {
  return LADDER[Math.min(level, SHED_LEVEL_MAX)]!;
}

export class Shed {
  readonly #options: ShedOptions;
  #level = 0;
  #calmSince: Millis | undefined;

  constructor(options: ShedOptions) {
    this.#options = options;
  }

  get level(): number {
    return this.#level;
  }

  /** To be told at a steady pace: each telling is worth one step at most. */
  receivePressure(pressure: Pressure, now: Millis): ShedChange | undefined {
    const cause = this.#causeIn(pressure, 1);
    if (cause !== undefined) {
      this.#calmSince = undefined;
      return this.#level < SHED_LEVEL_MAX ? this.#step(1, cause) : undefined;
    }
    if (this.#causeIn(pressure, 1 / 2) !== undefined) this.#calmSince = undefined;
    else this.#calmSince ??= now;
    if (this.#level === 0 || this.#calmSince === undefined || now - this.#calmSince < this.#options.shedCalmMs) return undefined;
    this.#calmSince = now;
    return this.#step(-1, "calm");
  }

  #step(by: number, cause: ShedCause): ShedChange {
    const from = this.#level;
    this.#level += by;
    return { from, to: this.#level, cause };
  }

  #causeIn({ delayMs, outboundBytes, natsLagMs }: Pressure, share: number): ShedCause | undefined {
    const { shedDelayMsMin, shedOutboundBytesMin, shedNatsLagMsMin } = this.#options;
    if (delayMs >= shedDelayMsMin * share) return "delay";
    if (outboundBytes >= shedOutboundBytesMin * share) return "outbound";
    return natsLagMs >= shedNatsLagMsMin * share ? "nats-lag" : undefined;
  }
}
