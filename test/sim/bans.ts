/**
 * Bans of users in a run. A ban holds if a gateway that runs knows it. Then, after the last fault, all gateways must
 * know it, no connection of the user may stay open, and no gateway may admit the user.
 */

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { TenantId, UnixMillis, UserId } from "../../shared/ids.ts";

/** Much longer than any difference between dates. */
const BAN_MS = 20 * 86_400_000;

/** A gateway from the view of bans. */
type BanningGateway = {
  readonly process: { readonly name: string; readonly state: string; readonly clock: { wallNow(): UnixMillis } };
  ban(sanction: Sanction): void;
  knowsBanOf(user: string): boolean;
};

export class SimBans {
  readonly #users = new Set<string>();
  readonly #knownEverywhere = new Set<string>();
  readonly #gateways: () => readonly BanningGateway[];

  constructor(gateways: () => readonly BanningGateway[]) {
    this.#gateways = gateways;
  }

  impose(gateway: BanningGateway, user: string): void {
    this.#users.add(user);
    gateway.ban(sanctionOf(user, gateway.process.clock.wallNow()));
  }

  wasBanned(user: string): boolean {
    return this.#users.has(user);
  }

  /** Whether a gateway knows the ban of this user. */
  holds(user: string): boolean {
    return this.#users.has(user) && this.#gateways().some((gateway) => gateway.process.state !== "dead" && gateway.knowsBanOf(user));
  }

  /** Whether all gateways knew the ban at the end of the faults. From then on none may admit the user. */
  isKnownEverywhere(user: string): boolean {
    return this.#knownEverywhere.has(user);
  }

  /** Describes a gateway that does not know a ban that another one knows. */
  unsettled(): string | undefined {
    for (const user of this.#users) {
      if (!this.holds(user)) continue;
      const unaware = this.#gateways().find((gateway) => !gateway.knowsBanOf(user));
      if (unaware !== undefined) return `${unaware.process.name} does not know the ban of ${user}`;
      this.#knownEverywhere.add(user);
    }
    return undefined;
  }
}

function sanctionOf(user: string, now: UnixMillis): Sanction {
  return {
    target: { kind: "user", tenant: "acme" as TenantId, user: user as UserId },
    level: "banned",
    madeAt: now,
    until: (now + BAN_MS) as UnixMillis,
    lifted: false,
    reason: "",
  };
}
