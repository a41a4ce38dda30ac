/**
 * Lets sanctions and orders have their way with the connections of this gateway: whoever is banned goes, whoever may
 * only read is told, and both are told again when the time is up.
 */

import { assertNever } from "../shared/assert.ts";
import type { Order, OrderAnswer, RoomMember, Sanction } from "../shared/bus/admin-messages.ts";
import type { Clock } from "../shared/clock.ts";
import type { RoomKey } from "../shared/ids.ts";
import type { ClientAddress } from "./client-address.ts";
import type { Identity } from "./identity.ts";
import type { ConnectionId } from "./ports.ts";
import type { Quotas } from "./quotas.ts";
import type { Sanctions } from "./sanctions.ts";
import type { Session, SessionEffect } from "./session.ts";

export type DisciplinePorts = {
  readonly gateway: string;
  readonly sessions: ReadonlyMap<ConnectionId, Session>;
  readonly quotas: Quotas;
  readonly carryOut: (connection: ConnectionId, session: Session, effects: readonly SessionEffect[]) => void;
};

export type Ban = { readonly message: string; readonly retryAfterMs: number };

export class DisciplineHost {
  readonly #sanctions: Sanctions;
  readonly #ports: DisciplinePorts;
  readonly #clock: Clock;

  constructor(sanctions: Sanctions, ports: DisciplinePorts, clock: Clock) {
    this.#sanctions = sanctions;
    this.#ports = ports;
    this.#clock = clock;
  }

  /** What a connection from there is told; undefined: it is welcome. */
  banOfAddress(address: ClientAddress | undefined): Ban | undefined {
    return this.#tell(address === undefined ? undefined : this.#sanctions.banOfAddress(address));
  }

  banOf({ tenant, user }: Identity): Ban | undefined {
    return this.#tell(this.#sanctions.banOf(tenant, user));
  }

  /** One that came, was lifted or ran out. */
  receiveChanged({ target, room, level }: Sanction): void {
    for (const [connection, session] of this.#ports.sessions) {
      const { identity } = session;
      const isMeant = target.kind === "address" ? this.#ports.quotas.addressOf(connection) === target.address : identity?.user === target.user && identity.tenant === target.tenant;
      if (!isMeant) continue;
      const ban = level !== "banned" || room !== undefined ? undefined : target.kind === "address" ? this.banOfAddress(target.address as ClientAddress) : this.banOf(identity!);
      const effects = ban === undefined ? session.receiveRestriction() : session.receiveRefusal("banned", ban.message, ban.retryAfterMs);
      this.#ports.carryOut(connection, session, effects);
    }
  }

  receiveOrder(order: Order): OrderAnswer {
    switch (order.kind) {
      case "kick":
        return { kicked: this.#kick(order), members: [] };
      case "list-members":
        return { kicked: 0, members: this.#membersOf(order.room) };
      default:
        return assertNever(order);
    }
  }

  #kick({ tenant, user, connection: name, room }: Order & { kind: "kick" }): number {
    let kicked = 0;
    for (const [connection, session] of this.#ports.sessions) {
      const { identity } = session;
      if (identity?.tenant !== tenant || (user !== undefined && identity.user !== user) || (name !== undefined && this.#nameOf(connection) !== name)) continue;
      const effects = room === undefined ? session.receiveRefusal("kicked", "whoever runs the room ended the connection") : session.receiveKick(room);
      if (effects.length > 0) kicked += 1;
      this.#ports.carryOut(connection, session, effects);
    }
    return kicked;
  }

  #membersOf(room: RoomKey): RoomMember[] {
    return [...this.#ports.sessions].flatMap(([connection, session]) => {
      const [rights, identity] = [session.rightsIn(room), session.identity];
      return rights === undefined || identity === undefined ? [] : [{ user: identity.user, name: identity.name, connection: this.#nameOf(connection), write: rights.write }];
    });
  }

  /** As in WELCOME. */
  #nameOf(connection: ConnectionId): string {
    return `${this.#ports.gateway}-${connection}`;
  }

  #tell(sanction: Sanction | undefined): Ban | undefined {
    if (sanction === undefined) return undefined;
    return { message: `banned for a time: ${sanction.reason}`, retryAfterMs: Math.max(1_000, sanction.until - this.#clock.wallNow()) };
  }
}
