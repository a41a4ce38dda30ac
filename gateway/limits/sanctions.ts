/**
 * Who is banned or may only read, until when. Every gateway holds all of it: whoever hears two in another order, or
 * one twice, comes to the same, for of two about the same the later one holds, and a lifted one is kept as lifted.
 * What a gateway imposes for abuse stands beside what people impose: so it takes that one's place on no gateway, in
 * whatever order they are heard. What people say lifts what gateways imposed.
 * Tenants share the room there is: whoever imposes more than that pushes out its own.
 */

import type { Sanction, Target } from "../../shared/bus/admin-messages.ts";
import type { RoomKey, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/client-address.ts";

type About = Pick<Sanction, "target" | "room" | "level" | "by">;

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

  /** What is known here, and is news to whoever knows `theirs`. Of those the same may be there several times. */
  beyond(theirs: readonly Sanction[]): Sanction[] {
    const newest = new Map<string, Sanction>();
    for (const sanction of theirs) if (isNews(sanction, newest.get(keyOf(sanction)))) newest.set(keyOf(sanction), sanction);
    return this.known.filter((sanction) => isNews(sanction, newest.get(keyOf(sanction))));
  }

  /** Made after all that is known of the same, whatever this machine's date: what was said before may come from one whose date is ahead. */
  madeLast(sanction: Sanction): Sanction {
    const before = this.#sanctions.get(keyOf(sanction));
    return before === undefined || before.madeAt < sanction.madeAt ? sanction : { ...sanction, madeAt: (before.madeAt + 1) as UnixMillis };
  }

  /** What is lifted with it: what people say of somebody takes the place of what gateways did. A moment before, for gateways that know both as one: there it is what people say that holds. */
  liftedBy(sanction: Sanction): Sanction | undefined {
    const imposed = sanction.by === "gateway" ? undefined : this.#inForce({ ...sanction, by: "gateway" });
    return imposed === undefined
      ? undefined
      : { ...imposed, madeAt: Math.max(imposed.madeAt, sanction.madeAt - 1) as UnixMillis, lifted: true };
  }

  /** True: it changes something. */
  receive(sanction: Sanction, now: UnixMillis): boolean {
    const key = keyOf(sanction);
    const before = this.#sanctions.get(key);
    if (sanction.until <= now || !isNews(sanction, before)) return false;
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
    return this.#banOn({ kind: "user", tenant, user });
  }

  banOfAddress(address: ClientAddress): Sanction | undefined {
    return this.#banOn({ kind: "address", address });
  }

  /** In one room, where a ban from everywhere is not for here to say; or, without one, anywhere. */
  restriction(tenant: TenantId, user: UserId, room: RoomKey | undefined): Sanction | undefined {
    if (this.#sanctions.size === 0) return undefined;
    const target = { kind: "user", tenant, user } as const;
    return (
      this.#inForce({ target, room, level: "banned" }) ??
      this.#inForce({ target, room, level: "read-only" }) ??
      this.#inForce({ target, level: "read-only" })
    );
  }

  /** From everywhere, whoever imposed it: of two the one that ends later. */
  #banOn(target: Target): Sanction | undefined {
    if (this.#sanctions.size === 0) return undefined;
    const byPeople = this.#inForce({ target, level: "banned" });
    const byGateway = this.#inForce({ target, level: "banned", by: "gateway" });
    return byPeople === undefined || (byGateway !== undefined && byGateway.until > byPeople.until) ? byGateway : byPeople;
  }

  #inForce(what: About): Sanction | undefined {
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

/** Addresses are the operators' and the gateways': nobody's, which is no tenant's name. */
function ownerOf({ target }: Sanction): string {
  return target.kind === "user" ? target.tenant : "";
}

function countOn(counts: Map<string, number>, owner: string): number {
  const count = (counts.get(owner) ?? 0) + 1;
  counts.set(owner, count);
  return count;
}

/** Whom and what it is about, and whose it is. Only the user may hold a space, and stands last. */
export function keyOf({ target, room, level, by }: About): string {
  const what = by === undefined ? level : `${by} ${level}`;
  return target.kind === "user" ? `${what} user ${target.tenant} ${room ?? "*"} ${target.user}` : `${what} address ${target.address}`;
}

/** `known`: of the same. Of two the one made later holds. */
function isNews(sanction: Sanction, known: Sanction | undefined): boolean {
  return known === undefined || supersedes(sanction, known);
}

function supersedes(later: Sanction, earlier: Sanction): boolean {
  if (later.madeAt !== earlier.madeAt) return later.madeAt > earlier.madeAt;
  return later.lifted && !earlier.lifted;
}
