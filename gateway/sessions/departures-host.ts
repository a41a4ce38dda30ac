/**
 * Asks all clients to move to another gateway, one after the other. This happens when the gateway stops, and while it
 * cannot reach NATS. Connections that remain at the end are closed.
 */

import type { Clock } from "../../shared/time/clock.ts";
import type { Millis } from "../../shared/ids.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import type { ConnectionMoves } from "../limits/quotas.ts";
import type { ConnectionId } from "../ports.ts";
import type { ClientSession } from "./client-session.ts";
import type { SessionEffect } from "./session-effects.ts";

type DeparturesPorts = {
  readonly carryOut: (connection: ConnectionId, session: ClientSession, effects: readonly SessionEffect[]) => void;
  readonly closeAll: (close: CloseName) => void;
  /** Announces to the other gateways when each connection moves. They admit it even if a limit is reached. */
  readonly handOver: (moves: ConnectionMoves) => void;
};
/** `backboneLossMsMax`: time for which clients stay while NATS is out of reach. */
export type DeparturesOptions = { readonly backboneLossMsMax: number };

/** Fraction of the time in which all clients are asked. The rest is for the last clients and for retries. */
const SPREAD_SHARE = 0.75;
/** Shorter losses of NATS are not announced. */
const DEGRADED_AFTER_MS = 1_000;

export class Departures {
  readonly #sessions: ReadonlyMap<ConnectionId, ClientSession>;
  readonly #ports: DeparturesPorts;
  readonly #options: DeparturesOptions;
  readonly #clock: Clock;
  #draining: Promise<void> | undefined;
  #drained: () => void = () => {};
  #isLossAnnounced = false;

  constructor(sessions: ReadonlyMap<ConnectionId, ClientSession>, ports: DeparturesPorts, options: DeparturesOptions, clock: Clock) {
    this.#sessions = sessions;
    this.#ports = ports;
    this.#options = options;
    this.#clock = clock;
  }

  get isDraining(): boolean {
    return this.#draining !== undefined;
  }

  /**
   * Resolves when all connections are closed or the time is over. 0: closes all connections immediately. Only the first
   * call counts.
   */
  drain(drainMsMax: number): Promise<void> {
    return (this.#draining ??= this.#drain(drainMsMax));
  }

  receiveAllGone(): void {
    this.#drained();
  }

  /**
   * The caller calls this every second. `lostAt`: undefined while NATS is reachable. Connections that find no other
   * gateway are closed at the end.
   */
  lookAtBackbone(lostAt: Millis | undefined, now: Millis): void {
    if (lostAt !== undefined && now - lostAt >= this.#options.backboneLossMsMax) return this.#ports.closeAll("degraded");
    const isLost = lostAt !== undefined && now - lostAt >= DEGRADED_AFTER_MS;
    if (isLost === this.#isLossAnnounced) return;
    this.#isLossAnnounced = isLost;
    [...this.#sessions].forEach(([connection, session], index) => {
      if (isLost) this.#announceLoss(connection, session, index);
      else this.#ports.carryOut(connection, session, session.receiveBackbone("found", 0));
    });
  }

  /** The connection is new, and has not received the announcement. */
  receiveNewSession(connection: ConnectionId, session: ClientSession): void {
    if (this.#isLossAnnounced) this.#announceLoss(connection, session, connection % this.#sessions.size);
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

  /** `place`: the index in the order in which the connections move. */
  #announceLoss(connection: ConnectionId, session: ClientSession, place: number): void {
    const turn = turnOf(place, this.#sessions.size, this.#options.backboneLossMsMax);
    this.#ports.carryOut(connection, session, session.receiveBackbone("lost", turn));
  }
}

/** Milliseconds until the connection at this place moves, when `connectionCount` connections move within `msMax`. */
function turnOf(place: number, connectionCount: number, msMax: number): number {
  return Math.floor(((msMax * SPREAD_SHARE) / connectionCount) * place);
}
