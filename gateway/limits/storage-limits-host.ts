/**
 * Announces to members that their room may only be read, or be written again, as storage limits are reported: each joins
 * again with other rights (WIRE40). A tenant may have all connections of a gateway, so they follow one another.
 */

import type { RoomKey } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { ConnectionId, StorageReports } from "../ports.ts";
import type { ClientSession } from "../sessions/client-session.ts";
import type { SessionEffect } from "../sessions/session-effects.ts";
import type { StorageChange, StorageLimits } from "./storage-limits.ts";

type StorageLimitsPorts = {
  readonly sessions: ReadonlyMap<ConnectionId, ClientSession>;
  readonly reports: StorageReports;
  readonly carryOut: (connection: ConnectionId, session: ClientSession, effects: readonly SessionEffect[]) => void;
};

const SESSIONS_AT_ONCE = 200;
const PAUSE_MS = 50;

export class StorageLimitsHost {
  readonly #limits: StorageLimits;
  readonly #ports: StorageLimitsPorts;
  readonly #clock: Clock;
  readonly #waiting = new Set<ConnectionId>();
  #cancel: (() => void) | undefined;

  constructor(limits: StorageLimits, ports: StorageLimitsPorts, clock: Clock) {
    this.#limits = limits;
    this.#ports = ports;
    this.#clock = clock;
  }

  /** Why nobody may write in the room; undefined: it has space. */
  fullOn(room: RoomKey): string | undefined {
    return this.#limits.fullOn(room);
  }

  start(): void {
    this.#ports.reports.onFull((full) => this.#receiveChange(this.#limits.receiveReport(full)));
  }

  stop(): void {
    this.#cancel?.();
  }

  #receiveChange({ rooms, tenants }: StorageChange): void {
    if (rooms.size === 0 && tenants.size === 0) return;
    for (const [connection, session] of this.#ports.sessions) {
      const { identity } = session;
      if (identity === undefined) continue;
      if (tenants.has(identity.tenant) || session.rooms.some((room) => rooms.has(room))) this.#waiting.add(connection);
    }
    this.#cancel ??= this.#clock.after(0, () => this.#announce());
  }

  #announce(): void {
    let count = 0;
    for (const connection of this.#waiting) {
      if (count++ === SESSIONS_AT_ONCE) break;
      this.#waiting.delete(connection);
      const session = this.#ports.sessions.get(connection);
      if (session?.open !== undefined) this.#ports.carryOut(connection, session, session.open.receiveRestriction());
    }
    this.#cancel = this.#waiting.size > 0 ? this.#clock.after(PAUSE_MS, () => this.#announce()) : undefined;
  }
}
