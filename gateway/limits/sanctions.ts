/**
 * Who is banned or may only read, until when. Every gateway holds all of it: whoever hears two in another order, or
 * one twice, comes to the same, for of two about the same the later one holds, and a lifted one is kept as lifted.
 * Tenants share the room there is: whoever imposes more than that pushes out its own.
 */

import type { Sanction } from "../../shared/bus/admin-messages.ts";
import type { RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../sessions/client-address.ts";

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

  /** Those lifted among them, for whoever was not there. One of each tenant, then a second of each: an answer that is cut short leaves out of those who have most. */
  get known(): Sanction[] {
    const counts = new Map<string, number>();
    const placed = [...this.#sanctions.values()].map((sanction) => ({ sanction, place: countOn(counts, ownerOf(sanction)) }));
    return placed.sort((a, b) => a.place - b.place).map(({ sanction }) => sanction);
  }

  /** Made after all that is known of the same, whatever this machine's date: what was said before may come from one whose date is ahead. */
  madeLast(sanction: Sanction): Sanction {
    const before = this.#sanctions.get(keyOf(sanction));
    return before === undefined || before.madeAt < sanction.madeAt ? sanction : { ...sanction, madeAt: (before.madeAt + 1) as UnixMillis };
  }

  /** True: it changes something. */
  receive(sanction: Sanction, now: UnixMillis): boolean {
    const key = keyOf(sanction);
    const before = this.#sanctions.get(key);
    if (sanction.until <= now || (before !== undefined && !supersedes(sanction, before))) return false;
    if (before === undefined && this.#sanctions.size >= this.#sanctionsMax) this.#forgetSoonestOf(this.#whoHasMostWith(sanction));
    this.#sanctions.set(key, sanction);
    return !(sanction.lifted && (before === undefined || before.lifted));
  }

  /** Those whose time is up: what they forbade is allowed again. */
  expire(now: UnixMillis): Sanction[] {
    const over = [...this.#sanctions].filter(([, { until }]) => until <= now);
    for (const [key] of over) this.#sanctions.delete(key);
    return over.map(([, sanction]) => sanction).filter(({ lifted }) => !lifted);
  }

  banOf(tenant: TenantId, user: UserId): Sanction | undefined {
    return this.#inForce({ target: { kind: "user", tenant, user }, level: "banned" });
  }

  banOfAddress(address: ClientAddress): Sanction | undefined {
    return this.#inForce({ target: { kind: "address", address }, level: "banned" });
  }

  /** In one room; a ban from everywhere is not for here to say. */
  restriction(tenant: TenantId, user: UserId, room: RoomKey): Sanction | undefined {
    if (this.#sanctions.size === 0) return undefined;
    const target = { kind: "user", tenant, user } as const;
    return this.#inForce({ target, room, level: "banned" }) ?? this.#inForce({ target, room, level: "read-only" }) ?? this.#inForce({ target, level: "read-only" });
  }

  #inForce(what: Pick<Sanction, "target" | "room" | "level">): Sanction | undefined {
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
    for (const [key, sanction] of this.#sanctions) if (sanction.until < end && ownerOf(sanction) === owner) [soonest, end] = [key, sanction.until];
    this.#sanctions.delete(soonest);
  }
}

/** Addresses are the operators' and the gateways': nobody's, which is no tenant's name. */
function ownerOf({ target }: Sanction): string {
  return target.kind === "user" ? target.tenant : "";
}

function countOn(counts: Map<string, number>, owner: string): number {
  const count = (counts.get(owner) ?? 0) + 1;
  counts.set(owner, count);
  return count;
}

/** Whom and what it is about. Only the user may hold a space, and stands last. */
export function keyOf({ target, room, level }: Pick<Sanction, "target" | "room" | "level">): string {
  return target.kind === "user" ? `${level} user ${target.tenant} ${room ?? "*"} ${target.user}` : `${level} address ${target.address}`;
}

function supersedes(later: Sanction, earlier: Sanction): boolean {
  if (later.madeAt !== earlier.madeAt) return later.madeAt > earlier.madeAt;
  return later.lifted && !earlier.lifted;
}
