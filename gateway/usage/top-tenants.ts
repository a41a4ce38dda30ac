/**
 * Chooses the tenants that metrics name, at most `namedMax`. All others share one label, so that no tenant name makes
 * a metric grow. A free place goes to the next tenant with usage. Once in each period, the busiest other tenant
 * replaces the least busy named one if it used more than twice as much. Recent usage counts more: each period halves
 * the usage before it.
 *
 * A counter of the shared label never falls: a tenant that loses its place counts there from then on, and its earlier
 * counts do not move. So an increase counts under one label only, and `rate()` stays correct.
 */

import type { TenantId } from "../../shared/ids.ts";
import { OTHER_TENANTS } from "./usage-counts.ts";

type TopTenantsOptions = {
  readonly namedMax: number;
  /** Tenants whose recent usage is known. Usage of further ones is ignored. */
  readonly knownMax: number;
};

/** A tenant has to use this many times as much as a named one to replace it, so that equals do not alternate. */
const REPLACING_FACTOR = 2;
const USE_BYTES_MIN = 1;

export class TopTenants {
  readonly #options: TopTenantsOptions;
  readonly #named = new Set<TenantId>();
  /** Recent bytes, which halve in each period. */
  readonly #use = new Map<TenantId, number>();

  constructor(options: TopTenantsOptions) {
    this.#options = options;
  }

  get named(): ReadonlySet<TenantId> {
    return this.#named;
  }

  /** The tenant itself, or `OTHER_TENANTS`. Takes a free place. */
  labelOf(tenant: TenantId): TenantId {
    if (this.#named.has(tenant)) return tenant;
    if (tenant === OTHER_TENANTS || this.#named.size >= this.#options.namedMax) return OTHER_TENANTS;
    this.#named.add(tenant);
    return tenant;
  }

  receiveUse(tenant: TenantId, bytes: number): void {
    if (tenant === OTHER_TENANTS) return;
    const before = this.#use.get(tenant);
    if (before === undefined && this.#use.size >= this.#options.knownMax) return;
    this.#use.set(tenant, (before ?? 0) + bytes);
  }

  /** Returns the tenant that loses its name. Undefined: all keep theirs. */
  endPeriod(): TenantId | undefined {
    const replaced = this.#replace();
    for (const [tenant, bytes] of this.#use) {
      if (bytes / 2 < USE_BYTES_MIN) this.#use.delete(tenant);
      else this.#use.set(tenant, bytes / 2);
    }
    return replaced;
  }

  #replace(): TenantId | undefined {
    if (this.#named.size < this.#options.namedMax) return undefined;
    const [least, busiest] = [this.#leastNamed(), this.#busiestOther()];
    if (least === undefined || busiest === undefined || this.#useOf(busiest) <= REPLACING_FACTOR * this.#useOf(least)) return undefined;
    this.#named.delete(least);
    this.#named.add(busiest);
    return least;
  }

  #leastNamed(): TenantId | undefined {
    return [...this.#named].reduce<TenantId | undefined>(
      (least, tenant) => (least === undefined || this.#useOf(tenant) < this.#useOf(least) ? tenant : least),
      undefined,
    );
  }

  #busiestOther(): TenantId | undefined {
    let busiest: TenantId | undefined;
    for (const tenant of this.#use.keys())
      if (!this.#named.has(tenant) && (busiest === undefined || this.#useOf(tenant) > this.#useOf(busiest))) busiest = tenant;
    return busiest;
  }

  #useOf(tenant: TenantId): number {
    return this.#use.get(tenant) ?? 0;
  }
}
