/**
 * Decides which of several equal processes works on a log partition. One holds the lease and renews it. Another process
 * takes it when its own clock has measured the length of the lease without a change, so no clocks are compared.
 *
 * The lease only avoids double work. A process that lost it without noticing does no harm, because every write names
 * the revision that it replaces.
 */

import type { RecordPlace } from "../bus/record.ts";
import type { Millis } from "../ids.ts";

/**
 * A marker that a service writes beside its data. A reader that finds this marker, or a later one, also finds all data
 * that was written before it.
 */
export type Sentinel = { readonly service: string; readonly number: number };

/**
 * `floor`: the results for records up to this stream sequence are durable; a new holder continues from there. `said`:
 * the sentinel written after that, if the holder writes sentinels. `last`: a record at or after the floor that the log
 * had. A log that lost it may have given numbers up to the floor to other records. Leases of earlier builds lack it.
 */
export type Lease = {
  readonly holder: string;
  readonly floor: number;
  readonly said?: Sentinel | undefined;
  readonly last?: RecordPlace | undefined;
};

/** The holder's name after the lease was released. */
export const NO_HOLDER = "";

export class LeaseWatch {
  readonly #holder: string;
  readonly #leaseMs: number;
  #seen: { revision: number; since: Millis } | undefined;

  constructor(options: { holder: string; leaseMs: number }) {
    this.#holder = options.holder;
    this.#leaseMs = options.leaseMs;
  }

  /** Whether the lease that was just read may be taken. */
  mayTake(lease: Lease | undefined, revision: number, now: Millis): boolean {
    if (lease === undefined || lease.holder === NO_HOLDER || lease.holder === this.#holder) return true;
    if (this.#seen?.revision !== revision) this.#seen = { revision, since: now };
    return now - this.#seen.since > this.#leaseMs;
  }

  /** The lease could not be read, so it may have been renewed. */
  receiveSilence(): void {
    this.#seen = undefined;
  }
}

/** `superseded`: another process wrote after that revision. */
export type LeaseWrite = { readonly kind: "written"; readonly revision: number } | { readonly kind: "superseded" };

/** The store of leases. `revision` 0: no lease exists yet. */
export interface Leases {
  read(partition: number): Promise<{ readonly lease: Lease | undefined; readonly revision: number }>;
  /** Replaces exactly `revision`. */
  write(partition: number, lease: Lease, revision: number): Promise<LeaseWrite>;
}
