/**
 * The bytes of each tenant over all partitions, and which tenants have reached their limit. Every document service
 * receives the counts; the one that reads the first partition decides.
 */

import type { TenantId } from "../../shared/ids.ts";
import type { TenantBytesMax } from "../../shared/settings/tenant-bytes.ts";
import { isLimitReached } from "./stored-bytes.ts";

/** `isReached` false: the tenant is below its limit again. */
type TenantLimitChange = {
  readonly tenant: TenantId;
  readonly bytes: number;
  readonly max: number;
  readonly isReached: boolean;
};

export class TenantBytes {
  readonly #partitions: number;
  readonly #max: TenantBytesMax;
  readonly #counts = new Map<number, ReadonlyMap<TenantId, number>>();
  readonly #full = new Map<TenantId, number>();
  #isDecided = true;

  constructor(partitions: number, max: TenantBytesMax) {
    this.#partitions = partitions;
    this.#max = max;
  }

  /** Undefined: the counts of a partition are missing. */
  get full(): ReadonlyMap<TenantId, number> | undefined {
    return this.#counts.size < this.#partitions ? undefined : this.#full;
  }

  receiveCounts(partition: number, tenants: ReadonlyMap<TenantId, number>): void {
    if (partition >= this.#partitions) return;
    this.#counts.set(partition, tenants);
    this.#isDecided = false;
  }

  /** The bytes of every tenant. Undefined: the counts of a partition are missing. */
  get all(): ReadonlyMap<TenantId, number> | undefined {
    return this.#counts.size < this.#partitions ? undefined : sumOf(this.#counts.values());
  }

  bytesOf(tenant: TenantId): number {
    let sum = 0;
    for (const counts of this.#counts.values()) sum += counts.get(tenant) ?? 0;
    return sum;
  }

  /** The tenants whose state changed. */
  decide(): readonly TenantLimitChange[] {
    if (this.full === undefined || this.#isDecided) return [];
    this.#isDecided = true;
    const tenants = new Set([...[...this.#counts.values()].flatMap((counts) => [...counts.keys()]), ...this.#full.keys()]);
    const changes: TenantLimitChange[] = [];
    for (const tenant of tenants) {
      const bytes = this.bytesOf(tenant);
      const max = this.#max.of(tenant);
      const wasReached = this.#full.has(tenant);
      const isReached = isLimitReached(bytes, max, wasReached);
      if (isReached) this.#full.set(tenant, bytes);
      else this.#full.delete(tenant);
      if (isReached !== wasReached) changes.push({ tenant, bytes, max, isReached });
    }
    return changes;
  }
}

function sumOf(parts: Iterable<ReadonlyMap<TenantId, number>>): ReadonlyMap<TenantId, number> {
  const sums = new Map<TenantId, number>();
  for (const part of parts) for (const [tenant, bytes] of part) sums.set(tenant, (sums.get(tenant) ?? 0) + bytes);
  return sums;
}
