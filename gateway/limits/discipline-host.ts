/**
 * Watches for abuse, and applies sanctions and admin commands to the connections of this gateway. A banned user is
 * disconnected, a read-only user is informed, and both are informed again when the sanction ends.
 */

import { assertNever } from "../../shared/assert.ts";
import type { AdminCommand, AdminReply, RoomMember, Sanction } from "../../shared/bus/admin-messages.ts";
import type { RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { ConnectionId } from "../ports.ts";
import type { ClientSession } from "../sessions/client-session.ts";
import type { Identity } from "../sessions/identity.ts";
import type { SessionEffect } from "../sessions/session-effects.ts";
import type { AbuseScores, AbuseFault, AbuseMeasure, Suspect } from "./abuse.ts";
import type { Quotas } from "./quotas.ts";
import { type Sanctions, withReason } from "./sanctions.ts";

type DisciplinePorts = {
  readonly gateway: string;
  readonly sessions: ReadonlyMap<ConnectionId, ClientSession>;
  readonly quotas: Quotas;
  readonly abuse: AbuseScores;
  readonly metrics: GatewayMetrics;
  /** For this gateway and all others. */
  readonly impose: (sanction: Sanction) => void;
  readonly carryOut: (connection: ConnectionId, session: ClientSession, effects: readonly SessionEffect[]) => void;
};

/** The reason of a rejection, which the client receives. */
export type RejectionNotice = { readonly close: "banned" | "rateLimited"; readonly message: string; readonly retryAfterMs: number };

/** A suspect that can be banned. */
type Culprit = Exclude<Suspect, { kind: "tenant" }>;

/** The fault that each close because of the client's behaviour counts as. */
const FAULTS: Partial<Record<CloseName, AbuseFault>> = {
  badFrame: "bad-frame",
  frameTooLarge: "too-large",
  rateLimited: "too-fast",
  unauthorized: "bad-token",
  helloTimeout: "no-hello",
  otherProtocol: "no-hello",
};

const REASONS: Readonly<Record<AbuseFault, string>> = {
  "connect": "too many connections, one after the other",
  "join": "too many rooms, one after the other",
  "bad-token": "too many bad tokens",
  "no-hello": "too many connections without a HELLO",
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

  /** Undefined: the connection may enter the admission queue. */
  receiveConnection(address: ClientAddress | undefined): RejectionNotice | undefined {
    return address === undefined ? undefined : this.#banOfAddress(address);
  }

  /** Undefined: the address is accepted. */
  receiveAddress(address: ClientAddress | undefined): RejectionNotice | undefined {
    return address === undefined ? undefined : (this.#banOfAddress(address) ?? this.#receiveArrival({ kind: "address", address }));
  }

  /** Undefined: the user is accepted. */
  receiveIdentity({ tenant, user }: Identity): RejectionNotice | undefined {
    return (
      this.#banOf(tenant, user) ??
      this.#holdOffNotice("tenant", this.#ports.abuse.holdOffOf({ kind: "tenant", tenant }, this.#clock.now())) ??
      this.#receiveArrival({ kind: "user", tenant, user })
    );
  }

  /** An open connection sends a new token. The connection is not new, so only a ban ends it. */
  receiveRenewal({ tenant, user }: Identity): RejectionNotice | undefined {
    return this.#banOf(tenant, user);
  }

  receiveJoin(session: ClientSession): void {
    if (session.identity !== undefined) this.#receiveFault(userOf(session.identity), "join");
  }

  /** A close because of the client's behaviour; a delay is no such close. `identity`: the user of the connection. */
  receiveClose(connection: ConnectionId, identity: Identity | undefined, close: CloseName): void {
    const fault = FAULTS[close];
    const address = this.#ports.quotas.addressOf(connection);
    if (fault === undefined) return;
    if (identity !== undefined) {
      this.#receiveFault(userOf(identity), fault);
      // A tenant may have any number of users.
      this.#ports.abuse.receiveFault({ kind: "tenant", tenant: identity.tenant }, fault, this.#clock.now());
    } else if (address !== undefined) this.#receiveFault({ kind: "address", address }, fault);
  }

  /** A bad token, from a connection that has closed or over HTTP. */
  receiveForgery(address: ClientAddress | undefined): void {
    if (address !== undefined) this.#receiveFault({ kind: "address", address }, "bad-token");
  }

  /** A sanction that began, was lifted or has ended. */
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
      const effects =
        ban === undefined ? (session.open?.receiveRestriction() ?? []) : session.receiveRefusal(ban.close, ban.message, ban.retryAfterMs);
      this.#ports.carryOut(connection, session, effects);
    }
  }

  receiveCommand(command: AdminCommand): Pick<AdminReply, "kicked" | "members"> {
    switch (command.kind) {
      case "kick":
        return { kicked: this.#kick(command), members: [] };
      case "list-members":
        return { kicked: 0, members: this.#membersOf(command.room) };
      default:
        return assertNever(command);
    }
  }

  #kick({ tenant, user, connection: name, room }: AdminCommand & { kind: "kick" }): number {
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
        room === undefined
          ? session.receiveRefusal("kicked", "a room administrator ended the connection")
          : (session.open?.receiveRemoval(room, "rights-revoked") ?? []);
      if (effects.length > 0) kicked += 1;
      this.#ports.carryOut(connection, session, effects);
    }
    return kicked;
  }

  #membersOf(room: RoomKey): RoomMember[] {
    return [...this.#ports.sessions].flatMap(([connection, session]) => {
      const [rights, identity] = [session.open?.rightsIn(room), session.identity];
      return rights === undefined || identity === undefined
        ? []
        : [{ user: identity.user, name: identity.name, connection: this.#nameOf(connection), write: rights.write }];
    });
  }

  /** The connection's name in WELCOME. */
  #nameOf(connection: ConnectionId): string {
    return `${this.#ports.gateway}-${connection}`;
  }

  #banOfTarget(target: Sanction["target"]): RejectionNotice | undefined {
    return target.kind === "address" ? this.#banOfAddress(target.address as ClientAddress) : this.#banOf(target.tenant, target.user);
  }

  #banOfAddress(address: ClientAddress): RejectionNotice | undefined {
    return this.#banNotice(this.#sanctionOn({ kind: "address", address }));
  }

  #banOf(tenant: TenantId, user: UserId): RejectionNotice | undefined {
    return this.#banNotice(this.#sanctionOn({ kind: "user", tenant, user }));
  }

  /** The ban in force. */
  #sanctionOn(culprit: Culprit): Sanction | undefined {
    return culprit.kind === "address" ? this.#sanctions.banOfAddress(culprit.address) : this.#sanctions.banOf(culprit.tenant, culprit.user);
  }

  /** A suspect close to a ban is delayed first. */
  #receiveArrival(suspect: Culprit): RejectionNotice | undefined {
    const measure = this.#receiveFault(suspect, "connect");
    if (measure.kind === "ban") return this.#banNotice(this.#sanctionOn(suspect));
    return this.#holdOffNotice(suspect.kind, measure);
  }

  #holdOffNotice(suspect: Suspect["kind"], measure: AbuseMeasure): RejectionNotice | undefined {
    if (measure.kind !== "hold-off") return undefined;
    this.#ports.metrics.abuse.inc({ measure: "hold-off", suspect });
    return {
      close: "rateLimited",
      message: `too much went wrong from this ${suspect} lately: connect again later`,
      retryAfterMs: measure.retryAfterMs,
    };
  }

  #receiveFault(suspect: Culprit, fault: AbuseFault): AbuseMeasure {
    const { abuse, metrics, impose } = this.#ports;
    metrics.faults.inc({ fault });
    // Some of the faults behind the ban are found only after it, for example tokens that waited for keys.
    if (this.#sanctionOn(suspect) !== undefined) return { kind: "none" };
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

  #banNotice(sanction: Sanction | undefined): RejectionNotice | undefined {
    if (sanction === undefined) return undefined;
    return {
      close: "banned",
      message: withReason("banned for a time", sanction),
      retryAfterMs: Math.max(1_000, sanction.until - this.#clock.wallNow()),
    };
  }
}

function userOf({ tenant, user }: { readonly tenant: TenantId; readonly user: UserId }): Culprit {
  return { kind: "user", tenant, user };
}
