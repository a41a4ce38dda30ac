/**
 * Who makes trouble. Each fault has a weight and fades; whoever has too much at once is held off for a moment, whoever
 * goes on is banned, and each further ban is twice as long. A user answers for what happens after HELLO; before it
 * nobody knows who it was, and the address answers. So nobody can have those banned who share an address with them.
 *
 * Points are counted where the fault happens, and those of the other gateways are added: whoever goes from one to the
 * next is no better off. Rules ABU1 to ABU11.
 */

import type { Millis, TenantId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { ClientAddress } from "../../shared/client-address.ts";

/** A tenant: for all its users together, who may be as many as whoever holds its secret likes. */
export type Suspect =
  | { readonly kind: "user"; readonly tenant: TenantId; readonly user: UserId }
  | { readonly kind: "address"; readonly address: ClientAddress }
  | { readonly kind: "tenant"; readonly tenant: TenantId };

/** connect: many make a storm. join: of very many rooms. The others end a connection. */
export type Fault = "connect" | "join" | "bad-token" | "no-hello" | "too-fast" | "too-large" | "bad-frame";

/** In points. An SDK does none of the last four, whatever its user does; a user with many tabs on a bad line connects often. */
const WEIGHTS: Readonly<Record<Fault, number>> = {
  "connect": 0.25,
  "join": 0.05,
  "bad-token": 5,
  "no-hello": 2,
  "too-fast": 10,
  "too-large": 15,
  "bad-frame": 15,
};
/** Everybody behind an address may come at once, and more than once, before that is a storm. */
const ADDRESS_FILLS_MAX = 4;
const ADDRESS_CONNECTS_MIN = 100;

export type AbuseOptions = {
  /** Points that lead to a ban; half of them to being held off. So many fade in a minute. */
  readonly abusePointsMax: number;
  /** The same for a tenant, which is held off only. */
  readonly tenantAbusePointsMax: number;
  readonly abuseBanMs: number;
  readonly abuseBanMsMax: number;
  readonly connectionsPerIpMax: number;
  /** How many are watched; whoever was heard of longest ago is forgotten first. */
  readonly suspectsMax: number;
};

export type Measure =
  | { readonly kind: "none" }
  | { readonly kind: "hold-off"; readonly retryAfterMs: number }
  | { readonly kind: "ban"; readonly banMs: number };

/** What the other gateways are to know: whole points. 0: nothing any more. */
export type Standing = { readonly kind: Suspect["kind"]; readonly key: string; readonly points: number };

/** From when until when, by date. */
export type BanTime = { readonly madeAt: UnixMillis; readonly until: UnixMillis };

/** `points`: as they stood at `at`. `bannedUntil`: 0, never. */
type Watched = {
  readonly kind: Suspect["kind"];
  points: number;
  at: Millis;
  readonly erredAt: Millis;
  readonly bans: number;
  bannedUntil: UnixMillis;
};

/** More would make a tenant wait long after it behaves. */
const FILLS_MAX = 2;
const FADE_MS = 60_000;
/** Whoever behaved for so long begins anew. */
const FORGET_BANS_MS = 86_400_000;
const NONE: Measure = { kind: "none" };
const NEVER = 0 as UnixMillis;

export class Abuse {
  readonly #options: AbuseOptions;
  readonly #elsewhere: (kind: Suspect["kind"], key: string) => number;
  /** Whoever was heard of last stands last. */
  readonly #watched = new Map<string, Watched>();
  /** Those with a point at least, to be told of. */
  readonly #notable = new Map<string, Suspect["kind"]>();

  /** `elsewhere`: points that the other gateways last said they count. */
  constructor(options: AbuseOptions, elsewhere: (kind: Suspect["kind"], key: string) => number = () => 0) {
    this.#options = options;
    this.#elsewhere = elsewhere;
  }

  get watched(): number {
    return this.#watched.size;
  }

  /** What is to become of it; whoever is to be banned is so once `receiveBan` says it. */
  receiveFault(suspect: Suspect, fault: Fault, now: Millis): Measure {
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
   * Here or by another gateway. What led to it is paid for; the next time it is for longer. One that begins while
   * another runs is of somebody who had not heard of that yet, for the same offence.
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

  /** It runs no more: a ban from now on is for another offence, even before that one's time would have been up. */
  receiveLift(suspect: Suspect): void {
    const watched = this.#watched.get(keyOf(suspect));
    if (watched !== undefined) watched.bannedUntil = NEVER;
  }

  /** Whether a new connection is to wait: the last warning before a ban. */
  standing(suspect: Suspect, now: Millis): Measure {
    const key = keyOf(suspect);
    const watched = this.#watched.get(key);
    const here = watched === undefined ? 0 : this.#faded(key, watched, now);
    return this.#holdOff(suspect.kind, here + this.#elsewhere(suspect.kind, key));
  }

  /** To be called every second: what stands here, for the other gateways. */
  endSecond(now: Millis): Standing[] {
    this.#forgetFaded(now);
    return [...this.#notable].map(([key, kind]) => {
      const watched = this.#watched.get(key);
      if (watched !== undefined) Object.assign(watched, { points: this.#faded(key, watched, now), at: now });
      const points = Math.floor(watched?.points ?? 0);
      if (points === 0) this.#notable.delete(key);
      return { kind, key, points };
    });
  }

  /** Everybody who connects is watched for a moment. Whoever has points left is waited for by those behind, who were heard of later. */
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

  #weightOf(suspect: Suspect, fault: Fault): number {
    const { abusePointsMax, connectionsPerIpMax } = this.#options;
    return suspect.kind === "address" && fault === "connect"
      ? abusePointsMax / Math.max(ADDRESS_CONNECTS_MIN, ADDRESS_FILLS_MAX * connectionsPerIpMax)
      : WEIGHTS[fault];
  }

  #holdOff(kind: Suspect["kind"], points: number): Measure {
    const pointsMax = this.#pointsMax(kind);
    const excess = points - pointsMax / 2;
    return excess <= 0 ? NONE : { kind: "hold-off", retryAfterMs: Math.ceil((excess / pointsMax) * FADE_MS) };
  }

  /** Gateways that share a suspect share what fades: else it would fade the faster the more of them it goes to. */
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

/** Of ASCII characters, and no two suspects of a kind alike. */
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
