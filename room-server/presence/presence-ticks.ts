/**
 * The tick of a room server's presence: when each room sends its deltas, and when each gateway should send its members'
 * presence. Presence from a gateway that follows the timing arrives just before the tick, so it waits for
 * ARRIVES_BEFORE_MS and not for a complete tick.
 */

import type { GatewayId, Millis } from "../../shared/ids.ts";
import { nextMoment, type SendTiming, phaseOf, slotsFor } from "../../shared/presence/send-timing.ts";

/** Longer than the usual delay of a gateway's timer. */
const ARRIVES_BEFORE_MS = 6;

/** The times at which a room sends its deltas. */
export type DeltaMoments = {
  /** The first such time at or after `now`. */
  next(now: Millis): Millis;
  /** The time of the tick that begins this number of ticks after the one that contains `now`. */
  after(now: Millis, ticks: number): Millis;
};

export class PresenceTicks {
  readonly #tickMs: number;
  #slots = 1;
  /** The time at which each gateway has to send, on its own clock, so that its message arrives at the beginning of a tick. */
  readonly #sendAtMs = new Map<GatewayId, number>();

  constructor({ presenceTickMs }: { readonly presenceTickMs: number }) {
    this.#tickMs = presenceTickMs;
  }

  /** Spreads the rooms over the number of slots that this number of rooms needs. */
  receiveRoomCount(rooms: number): void {
    this.#slots = slotsFor(rooms);
  }

  momentsOf(place: number): DeltaMoments {
    return new RoomMoments(this, place);
  }

  next(at: number, place: number): Millis {
    return nextMoment(at, this.#tickMs, phaseOf(place, this.#tickMs, this.#slots));
  }

  after(now: Millis, ticks: number, place: number): Millis {
    return this.next(now - this.#tickMs + 1 + ticks * this.#tickMs, place);
  }

  /** `sentAtMs`: a time of the gateway's clock. */
  receiveBatch(gateway: GatewayId, sentAtMs: number, now: Millis): void {
    const tickInMs = nextMoment(now, this.#tickMs, 0) - now;
    this.#sendAtMs.set(gateway, Math.floor(sentAtMs + tickInMs + this.#tickMs - ARRIVES_BEFORE_MS) % this.#tickMs);
  }

  timingOf(gateway: GatewayId): SendTiming {
    return { tickMs: this.#tickMs, slots: this.#slots, sendAtMs: this.#sendAtMs.get(gateway) ?? 0 };
  }

  forget(gateway: GatewayId): void {
    this.#sendAtMs.delete(gateway);
  }
}

/** There are very many of these, so they have two fields and no closures. */
class RoomMoments implements DeltaMoments {
  readonly #ticks: PresenceTicks;
  readonly #place: number;

  constructor(ticks: PresenceTicks, place: number) {
    this.#ticks = ticks;
    this.#place = place;
  }

  next(now: Millis): Millis {
    return this.#ticks.next(now, this.#place);
  }

  after(now: Millis, ticks: number): Millis {
    return this.#ticks.after(now, ticks, this.#place);
  }
}
