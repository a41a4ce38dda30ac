/**
 * Rates of HTTP requests, one token bucket per user or tenant. The one whose last request is the oldest is forgotten
 * first, and gets a full bucket at the next request. Also a rate that all tenants share.
 */

import type { Millis, TenantId } from "../../shared/ids.ts";
import { type Rate, TokenBucket } from "../../shared/limits/token-bucket.ts";

export type { Rate } from "../../shared/limits/token-bucket.ts";

export class UserRates {
  readonly #rate: Rate;
  readonly #readersMax: number;
  /** In order of use: the latest is last. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(rate: Rate, readersMax: number) {
    this.#rate = rate;
    this.#readersMax = readersMax;
  }

  take(reader: string, now: Millis, cost = 1): boolean {
    const bucket = this.#buckets.get(reader) ?? new TokenBucket(this.#rate, now);
    this.#buckets.delete(reader);
    this.#buckets.set(reader, bucket);
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined && this.#buckets.size > this.#readersMax) this.#buckets.delete(oldest);
    return bucket.take(now, cost);
  }
}

/**
 * Part of the shared rate that is reserved for tenants that take little. They share it, so it protects against a few
 * tenants that take much, not against eight or more.
 */
const MODEST_SHARE = 1 / 8;

/**
 * One rate for all tenants, because a tenant may have any number of users. An eighth of the burst is left for tenants
 * that take less than an eighth of the rate. A tenant alone has the complete rate.
 */
export class TenantRates {
  readonly #all: TokenBucket;
  readonly #modest: UserRates;
  readonly #left: number;

  constructor(rate: Rate, tenantsMax: number, now: Millis) {
    this.#all = new TokenBucket(rate, now);
    this.#left = Math.floor(MODEST_SHARE * rate.burst);
    this.#modest = new UserRates({ burst: Math.max(1, this.#left), perSecond: MODEST_SHARE * rate.perSecond }, tenantsMax);
  }

  take(tenant: TenantId, now: Millis): boolean {
    return this.#all.take(now, 1, this.#left) || (this.#modest.take(tenant, now) && this.#all.take(now));
  }
}
