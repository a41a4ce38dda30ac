/**
 * What this gateway leaves out under pressure, one thing after the other, in a fixed order: spectators first, edits
 * never. It goes down the ladder once pressure lasts, and up again step by step once it has been calm. What is over in
 * a moment, such as a crowd that comes in, leaves nothing out: to tell each client of a step costs more than it saves.
 */

import type { Millis } from "../../shared/ids.ts";
import { SHED_LEVEL_MAX } from "../presence/paces.ts";

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
export type ShedOptions = {
  readonly shedDelayMsMin: number;
  readonly shedOutboundBytesMin: number;
  readonly shedNatsLagMsMin: number;
  /** The first step is taken after so long without calm, the others at each telling that follows. */
  readonly shedPressureMs: number;
  readonly shedCalmMs: number;
};

export type ShedCause = "delay" | "outbound" | "nats-lag" | "calm";
export type ShedChange = { readonly from: number; readonly to: number; readonly cause: ShedCause };

export class Shed {
  readonly #options: ShedOptions;
  #level = 0;
  #pressedSince: Millis | undefined;
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
      this.#pressedSince ??= now;
      const lasts = now - this.#pressedSince >= this.#options.shedPressureMs;
      return lasts && this.#level < SHED_LEVEL_MAX ? this.#step(1, cause) : undefined;
    }
    if (this.#causeIn(pressure, 1 / 2) !== undefined) this.#calmSince = undefined;
    else {
      this.#pressedSince = undefined;
      this.#calmSince ??= now;
    }
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
