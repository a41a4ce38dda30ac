/**
 * Holds the usage of tenants by day until Redis has it. A batch has a number and does not change: after an unknown
 * outcome the same batch is sent again, and Redis adds each number once.
 */

import type { TenantId } from "../../shared/ids.ts";
import type { UsageDay } from "../../shared/time/usage-day.ts";
import { addUsage, noUsage, OTHER_TENANTS, type UsageCounts } from "./usage-counts.ts";

/** `number` rises with each batch of a gateway. Counts are whole numbers. */
export type UsageBatch = {
  readonly day: UsageDay;
  readonly number: number;
  readonly tenants: ReadonlyMap<TenantId, Readonly<UsageCounts>>;
};

type UsageDaysOptions = {
  /** Tenants, each counted once for every day with usage. Further tenants of a day are counted together. */
  readonly tenantDaysMax: number;
  readonly tenantsPerBatchMax: number;
};

export class UsageDays {
  readonly #options: UsageDaysOptions;
  /** The oldest day first. */
  readonly #days = new Map<UsageDay, Map<TenantId, UsageCounts>>();
  #batch: UsageBatch | undefined;
  #lastNumber = 0;
  #tenantDays = 0;

  constructor(options: UsageDaysOptions) {
    this.#options = options;
  }

  /** Tenants that wait for Redis, each once for every day. */
  get waiting(): number {
    return this.#tenantDays + (this.#batch?.tenants.size ?? 0);
  }

  /** False: too many tenants wait, and the usage counts for `OTHER_TENANTS`. */
  receiveUsage(day: UsageDay, tenant: TenantId, counts: Readonly<UsageCounts>): boolean {
    const tenants = this.#days.get(day) ?? new Map<TenantId, UsageCounts>();
    this.#days.set(day, tenants);
    const isNamed = tenants.has(tenant) || this.waiting < this.#options.tenantDaysMax;
    addUsage(this.#ofTenant(tenants, isNamed ? tenant : OTHER_TENANTS), counts);
    return isNamed;
  }

  /** The same batch until it is stored. Undefined: Redis has everything. */
  nextBatch(): UsageBatch | undefined {
    const [oldest] = this.#days;
    if (this.#batch !== undefined || oldest === undefined) return this.#batch;
    const [day, tenants] = oldest;
    const taken = [...tenants].slice(0, this.#options.tenantsPerBatchMax);
    for (const [tenant] of taken) tenants.delete(tenant);
    if (tenants.size === 0) this.#days.delete(day);
    this.#tenantDays -= taken.length;
    this.#lastNumber += 1;
    this.#batch = { day, number: this.#lastNumber, tenants: new Map(taken.map(([tenant, counts]) => [tenant, inWholeNumbers(counts)])) };
    return this.#batch;
  }

  /** Redis has the batch. */
  receiveStored(): void {
    this.#batch = undefined;
  }

  #ofTenant(tenants: Map<TenantId, UsageCounts>, tenant: TenantId): UsageCounts {
    const known = tenants.get(tenant);
    if (known !== undefined) return known;
    const counts = noUsage();
    tenants.set(tenant, counts);
    this.#tenantDays += 1;
    return counts;
  }
}

function inWholeNumbers(counts: Readonly<UsageCounts>): UsageCounts {
  return { ...counts, connectionMs: Math.round(counts.connectionMs) };
}
