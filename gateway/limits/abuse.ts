/**
 * Abuse scores. Each fault has a weight and fades. A high score delays new connections, a higher one leads to a ban,
 * and each further ban lasts twice as long. After HELLO a user is responsible; before it, when the user is unknown, the
 * address is. So nobody can cause a ban of others at the same address.
 *
 * A fault is counted where it happens, and the scores of other gateways are added, so changing gateways gives no
 * advantage. Rules ABU1 to ABU11.
 */

import type { Millis, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";

/** A tenant stands for all its users: the holder of its secret can create any number of them. */
export type Suspect =
  | { readonly kind: "user"; readonly tenant: TenantId; readonly user: UserId }
  | { readonly kind: "address"; readonly address: ClientAddress }
  | { readonly kind: "tenant"; readonly tenant: TenantId };

/** `connect` matters in large numbers, `join` in very large ones. Every other fault ends a connection. */
export type AbuseFault = "connect" | "join" | "bad-token" | "no-hello" | "too-fast" | "too-large" | "bad-frame";

/** Points per fault. An SDK never commits the last four. A user with many tabs and a bad connection connects often. */
const WEIGHTS: Readonly<Record<AbuseFault, number>> = {
  "connect": 0.25,
  "join": 0.05,
  "bad-token": 5,
  "no-hello": 2,
  "too-fast": 10,
  "too-large": 15,
  "bad-frame": 15,
};
/** All users of an address may connect at once, several times over, before that counts as abuse. */
const ADDRESS_FILLS_MAX = 4;
const ADDRESS_CONNECTS_MIN = 100;

export type AbuseOptions = {
  /** Points that lead to a ban; half of them delay new connections. As many points fade within a minute. */
  readonly abusePointsMax: number;
  /** The same for a tenant, which is delayed and never banned. */
  readonly tenantAbusePointsMax: number;
  readonly abuseBanMs: number;
  readonly abuseBanMsMax: number;
  readonly connectionsPerIpMax: number;
  /** Maximum number of suspects. The one that was active longest ago is forgotten first. */
  readonly suspectsMax: number;
};

export type AbuseMeasure =
  | { readonly kind: "none" }
  | { readonly kind: "hold-off"; readonly retryAfterMs: number }
  | { readonly kind: "ban"; readonly banMs: number };

/** A score for the other gateways, in whole points. 0: the score has faded. */
export type AbuseScore = { readonly kind: Suspect["kind"]; readonly key: string; readonly points: number };

/** Start and end of a ban, as dates. */
export type BanTime = { readonly madeAt: UnixMillis; readonly until: UnixMillis };

/** `points` is the score at the time `at`. `bannedUntil` is 0 when there was no ban. */
type Watched = {
  readonly kind: Suspect["kind"];
  points: number;
  at: Millis;
  readonly erredAt: Millis;
  readonly bans: number;
  bannedUntil: UnixMillis;
};

/** A cap on the score: a higher one would delay a tenant long after it behaves. */
const FILLS_MAX = 2;
const FADE_MS = 60_000;
/** After this time without a fault the count of bans starts again. */
const FORGET_BANS_MS = 86_400_000;
const NONE: AbuseMeasure = { kind: "none" };
const NEVER = 0 as UnixMillis;

export class AbuseScores {
  readonly #options: AbuseOptions;
  readonly #elsewhere: (kind: Suspect["kind"], key: string) => number;
  /** In order of activity: the most recent suspect is last. */
  readonly #watched = new Map<string, Watched>();
  /** Suspects with at least one point, which other gateways are informed about. */
  readonly #notable = new Map<string, Suspect["kind"]>();

  /** `elsewhere`: the points that the other gateways last reported. */
  constructor(options: AbuseOptions, elsewhere: (kind: Suspect["kind"], key: string) => number = () => 0) {
    this.#options = options;
    this.#elsewhere = elsewhere;
  }

  get watched(): number {
    return this.#watched.size;
  }

  /** Returns the measure to take. A ban takes effect with `receiveBan`. */
  receiveFault(suspect: Suspect, fault: AbuseFault, now: Millis): AbuseMeasure {
    const { kind } = suspect;
    const key = keyOf(suspect);
    const before = this.#watched.get(key);
    const faded = before === undefined ? 0 : this.#faded(key, before, now);
    const points = Math.min(faded + this.#weightOf(suspect, fault), this.#pointsMax(kind) * FILLS_MAX);
    const bans = bansOf(before, now);
    this.#keep(key, { kind, points, at: now, erredAt: now, bans, bannedUntil: before?.bannedUntil ?? NEVER });
    const { abuseBanMs, abuseBanMsMax } = this.#options;
    const total = points + this.#elsewhere(kind, key);
    const isOver = kind !== "tenant" && total >= this.#pointsMax(kind);
    return isOver ? { kind: "ban", banMs: Math.min(abuseBanMsMax, abuseBanMs * 2 ** bans) } : this.#holdOff(kind, total);
  }

  /**
   * A ban by this or another gateway. It clears the score, and the next ban lasts longer. A ban that begins while
   * another runs is for the same offence: its gateway did not know of the other.
   */
  receiveBan(suspect: Suspect, { madeAt, until }: BanTime, now: Millis): void {
    const { kind } = suspect;
    const key = keyOf(suspect);
    const before = this.#watched.get(key);
    const bannedUntil = before?.bannedUntil ?? NEVER;
    const offences = madeAt < bannedUntil ? 0 : 1;
    this.#keep(key, {
      kind,
      points: 0,
      at: now,
      erredAt: now,
      bans: bansOf(before, now) + offences,
      bannedUntil: Math.max(bannedUntil, until) as UnixMillis,
    });
  }

  /** The ban is lifted: a later ban is for another offence, even before the lifted one would have ended. */
  receiveLift(suspect: Suspect): void {
    const watched = this.#watched.get(keyOf(suspect));
    if (watched !== undefined) watched.bannedUntil = NEVER;
  }

  /** Whether a new connection must wait: the last warning before a ban. */
  holdOffOf(suspect: Suspect, now: Millis): AbuseMeasure {
    const key = keyOf(suspect);
    const watched = this.#watched.get(key);
    const here = watched === undefined ? 0 : this.#faded(key, watched, now);
    return this.#holdOff(suspect.kind, here + this.#elsewhere(suspect.kind, key));
  }

  /** Call every second. Returns the scores for the other gateways. */
  endSecond(now: Millis): AbuseScore[] {
    this.#forgetFaded(now);
    return [...this.#notable].map(([key, kind]) => {
      const watched = this.#watched.get(key);
      if (watched !== undefined) Object.assign(watched, { points: this.#faded(key, watched, now), at: now });
      const points = Math.floor(watched?.points ?? 0);
      if (points === 0) this.#notable.delete(key);
      return { kind, key, points };
    });
  }

  /**
   * Forgets suspects whose score has faded, in order of activity. A suspect with points left keeps the later ones too.
   */
  #forgetFaded(now: Millis): void {
    for (const [key, watched] of this.#watched) {
      if (watched.bans > 0 && now - watched.erredAt <= FORGET_BANS_MS) continue;
      if (this.#faded(key, watched, now) > 0) return;
      this.#watched.delete(key);
    }
  }

  #keep(key: string, watched: Watched): void {
    this.#watched.delete(key);
    this.#watched.set(key, watched);
    if (watched.points >= 1) this.#notable.set(key, watched.kind);
    const [oldest] = this.#watched.keys();
    if (oldest !== undefined && this.#watched.size > this.#options.suspectsMax) this.#watched.delete(oldest);
  }

  #weightOf(suspect: Suspect, fault: AbuseFault): number {
    const { abusePointsMax, connectionsPerIpMax } = this.#options;
    return suspect.kind === "address" && fault === "connect"
      ? abusePointsMax / Math.max(ADDRESS_CONNECTS_MIN, ADDRESS_FILLS_MAX * connectionsPerIpMax)
      : WEIGHTS[fault];
  }

  #holdOff(kind: Suspect["kind"], points: number): AbuseMeasure {
    const pointsMax = this.#pointsMax(kind);
    const excess = points - pointsMax / 2;
    return excess <= 0 ? NONE : { kind: "hold-off", retryAfterMs: Math.ceil((excess / pointsMax) * FADE_MS) };
  }

  /**
   * Gateways that share a suspect share the fading: otherwise a score would fade faster the more gateways the suspect
   * uses.
   */
  #faded(key: string, { kind, points, at }: Watched, now: Millis): number {
    if (points === 0) return 0;
    const share = points / (points + this.#elsewhere(kind, key));
    return Math.max(0, points - (share * this.#pointsMax(kind) * (now - at)) / FADE_MS);
  }

  #pointsMax(kind: Suspect["kind"]): number {
    return kind === "tenant" ? this.#options.tenantAbusePointsMax : this.#options.abusePointsMax;
  }
}

function bansOf(before: Watched | undefined, now: Millis): number {
  return before === undefined || now - before.erredAt > FORGET_BANS_MS ? 0 : before.bans;
}

/** ASCII only, and different for any two suspects of a kind. */
function keyOf(suspect: Suspect): string {
  switch (suspect.kind) {
    case "user":
      return `${suspect.tenant} ${encodeURIComponent(suspect.user)}`;
    case "address":
      return suspect.address;
    case "tenant":
      return suspect.tenant;
  }
}
