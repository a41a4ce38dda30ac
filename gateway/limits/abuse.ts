/**
 * Abuse scores of users, addresses and tenants. Each fault adds points, which decay. A high score delays new
 * connections, a higher score leads to a ban, and each further ban lasts twice as long. After HELLO, faults count
 * against the user; before HELLO, while the user is unknown, against the address. So no user can cause a ban of other
 * users at the same address.
 *
 * A gateway counts the faults that happen at it, and adds the scores that other gateways report. So changing gateways
 * gives no advantage. Rules ABU1 to ABU11.
 */

import type { Millis, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import { userKey } from "./quotas.ts";

/** A tenant has a score for all its users together, because the holder of its secret can create any number of users. */
export type Suspect =
  | { readonly kind: "user"; readonly tenant: TenantId; readonly user: UserId }
  | { readonly kind: "address"; readonly address: ClientAddress }
  | { readonly kind: "tenant"; readonly tenant: TenantId };

/** `connect` counts only in large numbers, `join` only in very large ones. Every other fault ends a connection. */
export type AbuseFault = "connect" | "join" | "bad-token" | "no-hello" | "too-fast" | "too-large" | "bad-frame";

/** Points per fault. A correct SDK never causes the last four faults. A user with many tabs and a bad connection connects often. */
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

type AbuseOptions = {
  /** Points that lead to a ban; half of them delay new connections. The same number of points decays within a minute. */
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

/** A score for the other gateways, in whole points. 0: the score has decayed. */
type AbuseScore = { readonly kind: Suspect["kind"]; readonly key: string; readonly points: number };

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

/** Maximum score, as a multiple of the points that lead to a ban. A higher score would delay a tenant long after its last fault. */
const SCORE_FACTOR_MAX = 2;
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
  /** Suspects with at least one point. The other gateways receive their scores. */
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
    const points = Math.min(faded + this.#weightOf(suspect, fault), this.#pointsMax(kind) * SCORE_FACTOR_MAX);
    const bans = bansOf(before, now);
    this.#keep(key, { kind, points, at: now, erredAt: now, bans, bannedUntil: before?.bannedUntil ?? NEVER });
    const { abuseBanMs, abuseBanMsMax } = this.#options;
    const total = points + this.#elsewhere(kind, key);
    const isOver = kind !== "tenant" && total >= this.#pointsMax(kind);
    return isOver ? { kind: "ban", banMs: Math.min(abuseBanMsMax, abuseBanMs * 2 ** bans) } : this.#holdOff(kind, total);
  }

  /**
   * A ban by this or another gateway. It clears the score, and the next ban lasts longer. A ban that begins during
   * another ban is for the same faults: its gateway had not received the other ban.
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

  /** The ban is lifted. A later ban is for other faults, even if it begins before the lifted ban would have ended. */
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

  /** Forgets suspects whose score has decayed, in order of activity. It stops at a suspect that has points left. */
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

  /** Gateways that share a suspect share the decay. Otherwise a score would decay faster the more gateways the suspect uses. */
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
      return userKey(suspect);
    case "address":
      return suspect.address;
    case "tenant":
      return suspect.tenant;
  }
}
