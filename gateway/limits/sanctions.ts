/**
 * All bans and read-only sanctions, on every gateway. The result does not depend on the order in which a gateway
 * receives them, or on repetitions: of two sanctions with the same subject the later one is valid, and a lifted
 * sanction is kept as lifted. A gateway's own sanction for abuse is kept beside one that people impose, and never
 * replaces it. A lift by people lifts both. Tenants share the space. A tenant that imposes too many sanctions displaces
 * only its own.
 */

import type { Sanction, SanctionTarget } from "../../shared/bus/admin-messages.ts";
import type { RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";

type SanctionKey = Pick<Sanction, "target" | "room" | "level" | "by">;

export class Sanctions {
  readonly #sanctionsMax: number;
  readonly #sanctions = new Map<string, Sanction>();

  constructor(options: { sanctionsMax: number }) {
    this.#sanctionsMax = options.sanctionsMax;
  }

  /** In force. */
  get all(): Sanction[] {
    return [...this.#sanctions.values()].filter(({ lifted }) => !lifted);
  }

  /**
   * All known sanctions, including lifted ones, for gateways that missed them. Tenants take turns, so a truncated
   * answer omits sanctions of the tenants with the most.
   */
  get known(): Sanction[] {
    const counts = new Map<string, number>();
    const placed = [...this.#sanctions.values()].map((sanction) => ({ sanction, place: countOn(counts, ownerOf(sanction)) }));
    return placed.sort((a, b) => a.place - b.place).map(({ sanction }) => sanction);
  }

  /** False: it has ended, or another one has replaced it. */
  isKnown(sanction: Sanction): boolean {
    return this.#sanctions.get(keyOf(sanction)) === sanction;
  }

  /** The sanctions known here that are new to the sender of `theirs`, which may contain one several times. */
  beyond(theirs: readonly Sanction[]): Sanction[] {
    const newest = new Map<string, Sanction>();
    for (const sanction of theirs) if (isNewer(sanction, newest.get(keyOf(sanction)))) newest.set(keyOf(sanction), sanction);
    return this.known.filter((sanction) => isNewer(sanction, newest.get(keyOf(sanction))));
  }

  /**
   * Dates the sanction after all known sanctions with the same subject, because an earlier one may come from a machine
   * whose clock is ahead.
   */
  madeLast(sanction: Sanction): Sanction {
    const before = this.#sanctions.get(keyOf(sanction));
    return before === undefined || before.madeAt < sanction.madeAt ? sanction : { ...sanction, madeAt: (before.madeAt + 1) as UnixMillis };
  }

  /**
   * The sanction by gateways that this lift by people also lifts. It is dated a moment before the lift. Some gateways
   * keep both as one subject: the lift by people is valid there.
   */
  liftedBy(sanction: Sanction): Sanction | undefined {
    const imposed = sanction.by === "gateway" ? undefined : this.#inForce({ ...sanction, by: "gateway" });
    return imposed === undefined
      ? undefined
      : { ...imposed, madeAt: Math.max(imposed.madeAt, sanction.madeAt - 1) as UnixMillis, lifted: true };
  }

  /** Returns whether it changes anything. */
  receiveSanction(sanction: Sanction, now: UnixMillis): boolean {
    const key = keyOf(sanction);
    const before = this.#sanctions.get(key);
    if (sanction.until <= now || !isNewer(sanction, before)) return false;
    if (before === undefined && this.#sanctions.size >= this.#sanctionsMax) this.#forgetSoonestOf(this.#whoHasMostWith(sanction));
    this.#sanctions.set(key, sanction);
    return !(sanction.lifted && (before === undefined || before.lifted));
  }

  /** Removes and returns the sanctions that have ended. */
  expire(now: UnixMillis): Sanction[] {
    const over = [...this.#sanctions].filter(([, { until }]) => until <= now);
    for (const [key] of over) this.#sanctions.delete(key);
    return over.map(([, sanction]) => sanction).filter(({ lifted }) => !lifted);
  }

  banOf(tenant: TenantId, user: UserId): Sanction | undefined {
    return this.#banOn({ kind: "user", tenant, user });
  }

  banOfAddress(address: ClientAddress): Sanction | undefined {
    return this.#banOn({ kind: "address", address });
  }

  /** The restriction in one room, not counting a ban from everywhere; without a room, anywhere. */
  restriction(tenant: TenantId, user: UserId, room: RoomKey | undefined): Sanction | undefined {
    if (this.#sanctions.size === 0) return undefined;
    const target = { kind: "user", tenant, user } as const;
    return (
      this.#inForce({ target, room, level: "banned" }) ??
      this.#inForce({ target, room, level: "read-only" }) ??
      this.#inForce({ target, level: "read-only" })
    );
  }

  /** The ban from everywhere, by people or gateways. If there are two, the one that ends later. */
  #banOn(target: SanctionTarget): Sanction | undefined {
    if (this.#sanctions.size === 0) return undefined;
    const byPeople = this.#inForce({ target, level: "banned" });
    const byGateway = this.#inForce({ target, level: "banned", by: "gateway" });
    return byPeople === undefined || (byGateway !== undefined && byGateway.until > byPeople.until) ? byGateway : byPeople;
  }

  #inForce(what: SanctionKey): Sanction | undefined {
    const found = this.#sanctions.get(keyOf(what));
    return found?.lifted === true ? undefined : found;
  }

  #whoHasMostWith(newcomer: Sanction): string {
    const counts = new Map([[ownerOf(newcomer), 1]]);
    let [most, owner] = [0, ""];
    for (const sanction of this.#sanctions.values()) {
      const count = countOn(counts, ownerOf(sanction));
      if (count > most) [most, owner] = [count, ownerOf(sanction)];
    }
    return owner;
  }

  #forgetSoonestOf(owner: string): void {
    let [soonest, end] = ["", Number.POSITIVE_INFINITY];
    for (const [key, sanction] of this.#sanctions)
      if (sanction.until < end && ownerOf(sanction) === owner) [soonest, end] = [key, sanction.until];
    this.#sanctions.delete(soonest);
  }
}

/** Addresses belong to no tenant, because only operators and gateways ban them. The empty text is no tenant's name. */
function ownerOf({ target }: Sanction): string {
  return target.kind === "user" ? target.tenant : "";
}

function countOn(counts: Map<string, number>, owner: string): number {
  const count = (counts.get(owner) ?? 0) + 1;
  counts.set(owner, count);
  return count;
}

/** The subject of a sanction as text. Only the user may contain a space, so it comes last. */
export function keyOf({ target, room, level, by }: SanctionKey): string {
  const what = by === undefined ? level : `${by} ${level}`;
  return target.kind === "user" ? `${what} user ${target.tenant} ${room ?? "*"} ${target.user}` : `${what} address ${target.address}`;
}

/** `known` has the same subject. The later of the two is valid. */
function isNewer(sanction: Sanction, known: Sanction | undefined): boolean {
  return known === undefined || supersedes(sanction, known);
}

function supersedes(later: Sanction, earlier: Sanction): boolean {
  if (later.madeAt !== earlier.madeAt) return later.madeAt > earlier.madeAt;
  return later.lifted && !earlier.lifted;
}

/** A refusal with the reason of the sanction, if it has one. */
export function withReason(refusal: string, { reason }: { readonly reason: string }): string {
  return reason === "" ? refusal : `${refusal}: ${reason}`;
}
