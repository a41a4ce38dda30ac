/**
 * Counts what tenants use. The other parts of the gateway count here, and `tenant-usage-host.ts` takes the counts every
 * second. Connections count by the time that they are open: two connections for 3 s and one more for 1 s are 7,000 ms.
 */

import type { Millis, TenantId } from "../../shared/ids.ts";
import { noUsage, OTHER_TENANTS, type UsageCounts, type UsageQuantity } from "./usage-counts.ts";

type UsageMeterOptions = { readonly tenantsMax: number };

/** `since`: up to this time the connections are counted. */
type OpenConnections = { count: number; since: Millis };

export class UsageMeter {
  readonly #tenantsMax: number;
  #counts = new Map<TenantId, UsageCounts>();
  readonly #open = new Map<TenantId, OpenConnections>();

  constructor({ tenantsMax }: UsageMeterOptions) {
    this.#tenantsMax = tenantsMax;
  }

  add(tenant: TenantId, quantity: UsageQuantity, amount: number): void {
    this.#of(tenant)[quantity] += amount;
  }

  receiveOpened(tenant: TenantId, now: Millis): void {
    this.add(tenant, "connections", 1);
    this.#change(tenant, 1, now);
  }

  receiveClosed(tenant: TenantId, now: Millis): void {
    this.#change(tenant, -1, now);
  }

  /** Tenants with open connections. */
  get openConnections(): ReadonlyMap<TenantId, { readonly count: number }> {
    return this.#open;
  }

  /** Returns and clears the counts. */
  takeCounts(now: Millis): ReadonlyMap<TenantId, UsageCounts> {
    for (const [tenant, open] of this.#open) this.#countTime(tenant, open, now);
    const counts = this.#counts;
    this.#counts = new Map();
    return counts;
  }

  #change(tenant: TenantId, by: number, now: Millis): void {
    const open = this.#open.get(tenant) ?? { count: 0, since: now };
    this.#countTime(tenant, open, now);
    open.count += by;
    if (open.count === 0) this.#open.delete(tenant);
    else this.#open.set(tenant, open);
  }

  #countTime(tenant: TenantId, open: OpenConnections, now: Millis): void {
    if (open.count > 0 && now > open.since) this.add(tenant, "connectionMs", open.count * (now - open.since));
    open.since = now;
  }

  #of(tenant: TenantId): UsageCounts {
    const known = this.#counts.get(tenant);
    if (known !== undefined) return known;
    const name = this.#counts.size < this.#tenantsMax ? tenant : OTHER_TENANTS;
    const counts = this.#counts.get(name) ?? noUsage();
    this.#counts.set(name, counts);
    return counts;
  }
}
