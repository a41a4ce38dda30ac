/**
 * Load shedding. Under lasting pressure the gateway stops sending one kind of data after another, in a fixed order.
 * Spectators lose data first, and edits are never shed. When the load has been calm, the level falls step by step. A
 * short peak, such as many joins at once, changes nothing, because informing every client of a step costs more than it
 * saves.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Pressure } from "../ports.ts";
import { SHED_LEVEL_MAX } from "../presence/shed-ladder.ts";

/**
 * The limits of the load. A value at its limit or above counts as pressure. The load is calm while every value is below
 * half of its limit.
 */
type ShedOptions = {
  readonly shedDelayMsMin: number;
  readonly shedOutboundBytesMin: number;
  readonly shedNatsLagMsMin: number;
  /** Time without calm before the first step. Each further step follows at the next measurement. */
  readonly shedPressureMs: number;
  readonly shedCalmMs: number;
};

type ShedCause = "delay" | "outbound" | "nats-lag" | "calm";
type ShedChange = { readonly from: number; readonly to: number; readonly cause: ShedCause };

export class LoadShedder {
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

  /** Call at a steady interval: each measurement changes the level by at most one step. */
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

/** 0 disables the check. */
type OutboundHealthOptions = { readonly outboundP99MsMax: number };

const DEGRADED_AFTER_MS = 5_000;
const WELL_AFTER_MS = 10_000;
/** Below this share of the limit the delay is acceptable again. */
const WELL_SHARE = 1 / 2;

/**
 * Whether messages reach clients so late that the gateway should receive no new clients. Existing clients stay. A
 * change of the state takes time, and the return to ready takes longer: a balancer that moved every client back and
 * forth would increase the load. Rules OUH1 to OUH3.
 */
export class OutboundHealth {
  readonly #options: OutboundHealthOptions;
  #isDegraded = false;
  /** Time since which the measurements contradict the current state. */
  #otherwiseSince: Millis | undefined;

  constructor(options: OutboundHealthOptions) {
    this.#options = options;
  }

  get isDegraded(): boolean {
    return this.#isDegraded;
  }

  /** Call at a steady interval with the latest p99. Returns whether the state has changed. */
  receiveP99(p99Ms: number, now: Millis): boolean {
    const { outboundP99MsMax: max } = this.#options;
    const isOtherwise = this.#isDegraded ? p99Ms < max * WELL_SHARE : max > 0 && p99Ms > max;
    if (!isOtherwise) {
      this.#otherwiseSince = undefined;
      return false;
    }
    this.#otherwiseSince ??= now;
    if (now - this.#otherwiseSince < (this.#isDegraded ? WELL_AFTER_MS : DEGRADED_AFTER_MS)) return false;
    this.#isDegraded = !this.#isDegraded;
    this.#otherwiseSince = undefined;
    return true;
  }
}
