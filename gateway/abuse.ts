/**
 * Who makes trouble. Each fault has a weight and fades; whoever has too much at once is held off for a moment, whoever
 * goes on is banned, and each further ban is twice as long. A user answers for what happens after HELLO; before it
 * nobody knows who it was, and the address answers. So nobody can have those banned who share an address with them.
 */

import type { Millis, TenantId, UserId } from "../shared/ids.ts";
import type { ClientAddress } from "./client-address.ts";

export type Suspect = { readonly kind: "user"; readonly tenant: TenantId; readonly user: UserId } | { readonly kind: "address"; readonly address: ClientAddress };

/** connect: many make a storm. join: of very many rooms. The others end a connection. */
export type Fault = "connect" | "join" | "bad-token" | "no-hello" | "too-fast" | "too-large" | "bad-frame";

/** In points. An SDK does none of the last four, whatever its user does; a user with many tabs on a bad line connects often. */
const WEIGHTS: Readonly<Record<Fault, number>> = { connect: 0.25, join: 0.05, "bad-token": 5, "no-hello": 2, "too-fast": 10, "too-large": 15, "bad-frame": 15 };
/** Everybody behind an address may come at once, and more than once, before that is a storm. */
const ADDRESS_FILLS_MAX = 4;
const ADDRESS_CONNECTS_MIN = 100;

export type AbuseOptions = {
  /** Points that lead to a ban; half of them to being held off. So many fade in a minute. */
  readonly abusePointsMax: number;
  readonly abuseBanMs: number;
  readonly abuseBanMsMax: number;
  readonly connectionsPerIpMax: number;
  /** How many are watched; whoever was heard of longest ago is forgotten first. */
  readonly suspectsMax: number;
};

export type Measure = { readonly kind: "none" } | { readonly kind: "hold-off"; readonly retryAfterMs: number } | { readonly kind: "ban"; readonly banMs: number };

type Watched = { points: number; at: Millis; bans: number };

const FADE_MS = 60_000;
/** Whoever behaved for so long begins anew. */
const FORGET_BANS_MS = 86_400_000;
const NONE: Measure = { kind: "none" };

export class Abuse {
  readonly #options: AbuseOptions;
  /** Whoever was heard of last stands last. */
  readonly #watched = new Map<string, Watched>();

  constructor(options: AbuseOptions) {
    this.#options = options;
  }

  get watched(): number {
    return this.#watched.size;
  }

  receiveFault(suspect: Suspect, fault: Fault, now: Millis): Measure {
    const key = keyOf(suspect);
    const before = this.#watched.get(key) ?? { points: 0, at: now, bans: 0 };
    const points = this.#faded(before, now) + this.#weightOf(suspect, fault);
    const bans = now - before.at > FORGET_BANS_MS ? 0 : before.bans;
    this.#watched.delete(key);
    const { abusePointsMax, abuseBanMs, abuseBanMsMax } = this.#options;
    const isOver = points >= abusePointsMax;
    this.#watched.set(key, isOver ? { points: 0, at: now, bans: bans + 1 } : { points, at: now, bans });
    this.#forgetOldest();
    if (isOver) return { kind: "ban", banMs: Math.min(abuseBanMsMax, abuseBanMs * 2 ** bans) };
    return this.#holdOff(points);
  }

  /** Whether a new connection is to wait: the last warning before a ban. */
  standing(suspect: Suspect, now: Millis): Measure {
    const watched = this.#watched.get(keyOf(suspect));
    return watched === undefined ? NONE : this.#holdOff(this.#faded(watched, now));
  }

  #weightOf(suspect: Suspect, fault: Fault): number {
    const { abusePointsMax, connectionsPerIpMax } = this.#options;
    return suspect.kind === "address" && fault === "connect" ? abusePointsMax / Math.max(ADDRESS_CONNECTS_MIN, ADDRESS_FILLS_MAX * connectionsPerIpMax) : WEIGHTS[fault];
  }

  #holdOff(points: number): Measure {
    const excess = points - this.#options.abusePointsMax / 2;
    return excess <= 0 ? NONE : { kind: "hold-off", retryAfterMs: Math.ceil((excess / this.#options.abusePointsMax) * FADE_MS) };
  }

  #faded({ points, at }: Watched, now: Millis): number {
    return Math.max(0, points - (this.#options.abusePointsMax * (now - at)) / FADE_MS);
  }

  #forgetOldest(): void {
    const [oldest] = this.#watched.keys();
    if (oldest !== undefined && this.#watched.size > this.#options.suspectsMax) this.#watched.delete(oldest);
  }
}

function keyOf(suspect: Suspect): string {
  return suspect.kind === "user" ? `${suspect.tenant} ${suspect.user}` : suspect.address;
}
