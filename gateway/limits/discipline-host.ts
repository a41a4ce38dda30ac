/**
 * Watches for abuse, and lets sanctions and orders have their way with the connections of this gateway: whoever is banned
 * goes, whoever may only read is told, and both are told again when the time is up.
 */

import { because } from "./because.ts";
import { assertNever } from "../../shared/assert.ts";
import type { Order, OrderAnswer, RoomMember, Sanction } from "../../shared/bus/admin-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import type { Abuse, Fault, Measure, Suspect } from "./abuse.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import type { Identity } from "../sessions/identity.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import type { Quotas } from "./quotas.ts";
import type { Sanctions } from "./sanctions.ts";
import type { Session } from "../sessions/session.ts";
import type { SessionEffect } from "../sessions/session-effects.ts";

export type DisciplinePorts = {
  readonly gateway: string;
  readonly sessions: ReadonlyMap<ConnectionId, Session>;
  readonly quotas: Quotas;
  readonly abuse: Abuse;
  readonly metrics: GatewayMetrics;
  /** For this gateway and all others. */
  readonly impose: (sanction: Sanction) => void;
  readonly carryOut: (connection: ConnectionId, session: Session, effects: readonly SessionEffect[]) => void;
};

/** What somebody is told who is not let in. */
export type Ban = { readonly close: "banned" | "rateLimited"; readonly message: string; readonly retryAfterMs: number };

/** Whoever can be banned. */
type Culprit = Exclude<Suspect, { kind: "tenant" }>;

/** What each close that the client brought upon itself is to be held against. */
const FAULTS: Partial<Record<CloseName, Fault>> = {
  badFrame: "bad-frame",
  frameTooLarge: "too-large",
  rateLimited: "too-fast",
  unauthorized: "bad-token",
  helloTimeout: "no-hello",
};

const REASONS: Readonly<Record<Fault, string>> = {
  "connect": "too many connections, one after the other",
  "join": "too many rooms, one after the other",
  "bad-token": "too many bad tokens",
  "no-hello": "too many connections that say nothing",
  "too-fast": "faster than the limits again and again",
  "too-large": "frames over the limit again and again",
  "bad-frame": "frames that are none again and again",
};

export class DisciplineHost {
  readonly #sanctions: Sanctions;
  readonly #ports: DisciplinePorts;
  readonly #clock: Clock;

  constructor(sanctions: Sanctions, ports: DisciplinePorts, clock: Clock) {
    this.#sanctions = sanctions;
    this.#ports = ports;
    this.#clock = clock;
  }

  /** Undefined: whoever comes from there may wait for its turn. */
  receiveKnock(address: ClientAddress | undefined): Ban | undefined {
    return address === undefined ? undefined : this.#banOfAddress(address);
  }

  /** Undefined: whoever comes from there is welcome. */
  receiveAddress(address: ClientAddress | undefined): Ban | undefined {
    return address === undefined ? undefined : (this.#banOfAddress(address) ?? this.#receiveArrival({ kind: "address", address }));
  }

  /** Undefined: whoever says who it is, is welcome. */
  receiveIdentity({ tenant, user }: Identity): Ban | undefined {
    return (
      this.#banOf(tenant, user) ??
      this.#tellToWait("tenant", this.#ports.abuse.standing({ kind: "tenant", tenant }, this.#clock.now())) ??
      this.#receiveArrival({ kind: "user", tenant, user })
    );
  }

  /** A connection that is open shows a new token: that is no arrival, and only a ban ends it. */
  receiveRenewal({ tenant, user }: Identity): Ban | undefined {
    return this.#banOf(tenant, user);
  }

  receiveJoin(session: Session): void {
    if (session.identity !== undefined) this.#receiveFault(userOf(session.identity), "join");
  }

  /** A close that the client brought upon itself: being held off is none. `identity`: of whom the connection was until then. */
  receiveClose(connection: ConnectionId, identity: Identity | undefined, close: CloseName): void {
    const fault = FAULTS[close];
    const address = this.#ports.quotas.addressOf(connection);
    if (fault === undefined) return;
    if (identity !== undefined) {
      this.#receiveFault(userOf(identity), fault);
      this.#ports.abuse.receiveFault({ kind: "tenant", tenant: identity.tenant }, fault, this.#clock.now()); // One secret makes any number of users.
    } else if (address !== undefined) this.#receiveFault({ kind: "address", address }, fault);
  }

  /** A token that does not hold, shown by a connection that is gone, or over HTTP. */
  receiveForgery(address: ClientAddress | undefined): void {
    if (address !== undefined) this.#receiveFault({ kind: "address", address }, "bad-token");
  }

  /** One that came, was lifted or ran out. */
  receiveChanged({ target, room, level, lifted, madeAt, until }: Sanction): void {
    if (level === "banned" && room === undefined) {
      const suspect: Suspect = target.kind === "user" ? userOf(target) : { kind: "address", address: target.address as ClientAddress };
      if (lifted) this.#ports.abuse.receiveLift(suspect);
      else if (until > this.#clock.wallNow()) this.#ports.abuse.receiveBan(suspect, { madeAt, until }, this.#clock.now());
    }
    for (const [connection, session] of this.#ports.sessions) {
      const { identity } = session;
      const isMeant =
        target.kind === "address"
          ? this.#ports.quotas.addressOf(connection) === target.address
          : identity?.user === target.user && identity.tenant === target.tenant;
      if (!isMeant) continue;
      const ban = level === "banned" && room === undefined ? this.#banOfTarget(target) : undefined;
      const effects = ban === undefined ? session.receiveRestriction() : session.receiveRefusal(ban.close, ban.message, ban.retryAfterMs);
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
      if (
        identity?.tenant !== tenant ||
        (user !== undefined && identity.user !== user) ||
        (name !== undefined && this.#nameOf(connection) !== name)
      )
        continue;
      const effects =
        room === undefined ? session.receiveRefusal("kicked", "whoever runs the room ended the connection") : session.receiveKick(room);
      if (effects.length > 0) kicked += 1;
      this.#ports.carryOut(connection, session, effects);
    }
    return kicked;
  }

  #membersOf(room: RoomKey): RoomMember[] {
    return [...this.#ports.sessions].flatMap(([connection, session]) => {
      const [rights, identity] = [session.rightsIn(room), session.identity];
      return rights === undefined || identity === undefined
        ? []
        : [{ user: identity.user, name: identity.name, connection: this.#nameOf(connection), write: rights.write }];
    });
  }

  /** As in WELCOME. */
  #nameOf(connection: ConnectionId): string {
    return `${this.#ports.gateway}-${connection}`;
  }

  #banOfTarget(target: Sanction["target"]): Ban | undefined {
    return target.kind === "address" ? this.#banOfAddress(target.address as ClientAddress) : this.#banOf(target.tenant, target.user);
  }

  #banOfAddress(address: ClientAddress): Ban | undefined {
    return this.#tell(this.#sanctionOn({ kind: "address", address }));
  }

  #banOf(tenant: TenantId, user: UserId): Ban | undefined {
    return this.#tell(this.#sanctionOn({ kind: "user", tenant, user }));
  }

  /** The ban that is in force. */
  #sanctionOn(culprit: Culprit): Sanction | undefined {
    return culprit.kind === "address" ? this.#sanctions.banOfAddress(culprit.address) : this.#sanctions.banOf(culprit.tenant, culprit.user);
  }

  /** Whoever is on the way to a ban waits first. */
  #receiveArrival(suspect: Culprit): Ban | undefined {
    const measure = this.#receiveFault(suspect, "connect");
    if (measure.kind === "ban") return this.#tell(this.#sanctionOn(suspect));
    return this.#tellToWait(suspect.kind, measure);
  }

  #tellToWait(suspect: Suspect["kind"], measure: Measure): Ban | undefined {
    if (measure.kind !== "hold-off") return undefined;
    this.#ports.metrics.abuse.inc({ measure: "hold-off", suspect });
    return {
      close: "rateLimited",
      message: `too much went wrong from this ${suspect} lately: connect again later`,
      retryAfterMs: measure.retryAfterMs,
    };
  }

  #receiveFault(suspect: Culprit, fault: Fault): Measure {
    const { abuse, metrics, impose } = this.#ports;
    metrics.faults.inc({ fault });
    if (this.#sanctionOn(suspect) !== undefined) return { kind: "none" }; // Of what led to the ban some comes to light after it, such as tokens that waited for keys.
    const measure = abuse.receiveFault(suspect, fault, this.#clock.now());
    if (measure.kind !== "ban") return measure;
    metrics.abuse.inc({ measure: "ban", suspect: suspect.kind });
    const madeAt = this.#clock.wallNow();
    impose({
      target: suspect,
      level: "banned",
      by: "gateway",
      madeAt,
      until: Math.ceil(madeAt + measure.banMs) as UnixMillis,
      lifted: false,
      reason: REASONS[fault],
    });
    return measure;
  }

  #tell(sanction: Sanction | undefined): Ban | undefined {
    if (sanction === undefined) return undefined;
    return {
      close: "banned",
      message: because("banned for a time", sanction),
      retryAfterMs: Math.max(1_000, sanction.until - this.#clock.wallNow()),
    };
  }
}

function userOf({ tenant, user }: { readonly tenant: TenantId; readonly user: UserId }): Culprit {
  return { kind: "user", tenant, user };
}
