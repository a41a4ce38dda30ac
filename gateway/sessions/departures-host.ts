/**
 * Has all clients move to another gateway, one after the other: where this one stops, and while it is cut off from NATS.
 * Whoever is here still when the time is up is closed, and moves as well.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Millis } from "../../shared/ids.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import type { Moves } from "../limits/quotas.ts";
import type { ConnectionId } from "../ports.ts";
import type { Session } from "./session.ts";
import type { SessionEffect } from "./session-effects.ts";

export type DeparturesPorts = {
  readonly carryOut: (connection: ConnectionId, session: Session, effects: readonly SessionEffect[]) => void;
  readonly closeAll: (close: CloseName) => void;
  /** Other gateways are to take this one's connections, each from its time on, whatever is full. */
  readonly handOver: (moves: Moves) => void;
};
/** `backboneLossMsMax`: clients stay for so long while NATS is out of reach. */
export type DeparturesOptions = { readonly backboneLossMsMax: number };

/** Of the time that there is: the rest is for the last who are asked, and for those who try again. */
const SPREAD_SHARE = 0.75;
/** NATS is often back in a moment: nobody needs to hear of that. */
const DEGRADED_AFTER_MS = 1_000;

export class Departures {
  readonly #sessions: ReadonlyMap<ConnectionId, Session>;
  readonly #ports: DeparturesPorts;
  readonly #options: DeparturesOptions;
  readonly #clock: Clock;
  #draining: Promise<void> | undefined;
  #drained: () => void = () => {};
  #toldLost = false;

  constructor(sessions: ReadonlyMap<ConnectionId, Session>, ports: DeparturesPorts, options: DeparturesOptions, clock: Clock) {
    this.#sessions = sessions;
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
  }

  get isDraining(): boolean {
    return this.#draining !== undefined;
  }

  /** With no time all are closed at once. Resolves once they are gone, or the time is up. Begins once. */
  drain(drainMsMax: number): Promise<void> {
    return (this.#draining ??= this.#drain(drainMsMax));
  }

  receiveAllGone(): void {
    this.#drained();
  }

  /** To be called every second. `lostAt`: undefined while NATS is there. There may be nowhere to move: then all are closed in the end. */
  lookAtBackbone(lostAt: Millis | undefined, now: Millis): void {
    if (lostAt !== undefined && now - lostAt >= this.#options.backboneLossMsMax) return this.#ports.closeAll("degraded");
    const isLost = lostAt !== undefined && now - lostAt >= DEGRADED_AFTER_MS;
    if (isLost === this.#toldLost) return;
    this.#toldLost = isLost;
    [...this.#sessions].forEach(([connection, session], index) => {
      if (isLost) this.#tellLost(connection, session, index);
      else this.#ports.carryOut(connection, session, session.receiveBackbone("found", 0));
    });
  }

  /** The others were told before it came. */
  receiveNewcomer(connection: ConnectionId, session: Session): void {
    if (this.#toldLost) this.#tellLost(connection, session, connection % this.#sessions.size);
  }

  #drain(drainMsMax: number): Promise<void> {
    const everybody = [...this.#sessions];
    const now = this.#clock.now();
    const turns = everybody.map((_, place) => turnOf(place, everybody.length, drainMsMax));
    this.#ports.handOver(new Map(everybody.map(([connection], place) => [connection, (now + turns[place]!) as Millis])));
    return new Promise((resolve) => {
      if (drainMsMax === 0) this.#ports.closeAll("goingAway");
      if (everybody.length === 0 || drainMsMax === 0) return resolve();
      const stopWaiting = this.#clock.after(drainMsMax, resolve);
      this.#drained = () => {
        stopWaiting();
        resolve();
      };
      everybody.forEach(([connection, session], place) =>
        this.#ports.carryOut(connection, session, session.receiveGoingAway(turns[place]!)),
      );
    });
  }

  /** `place`: in the row of all, who are to move one after the other. */
  #tellLost(connection: ConnectionId, session: Session, place: number): void {
    const turn = turnOf(place, this.#sessions.size, this.#options.backboneLossMsMax);
    this.#ports.carryOut(connection, session, session.receiveBackbone("lost", turn));
  }
}

/** After how many milliseconds whoever has that place of so many is to move. */
function turnOf(place: number, everybody: number, msMax: number): number {
  return Math.floor(((msMax * SPREAD_SHARE) / everybody) * place);
}
