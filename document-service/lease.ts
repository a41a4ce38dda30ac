/**
 * Which document service reads a partition of the log. One holds the lease and renews it; the others look
 * on, and take it when it has stood still for its whole length by their own clock: no clocks are compared.
 *
 * The lease only spares double work. That a service which lost it unknowingly harms nothing is settled
 * where it writes: every checkpoint replaces exactly the revision its writer had read.
 */

import type { Millis } from "../shared/ids.ts";

/** `floor`: every record of the partition up to this stream sequence is in a snapshot; a new holder reads on from there. */
export type Lease = { readonly holder: string; readonly floor: number };

/** The holder's name when it was given back. */
export const NOBODY = "";

export class LeaseWatch {
  readonly #service: string;
  readonly #leaseMs: number;
  #seen: { revision: number; since: Millis } | undefined;

  constructor(options: { service: string; leaseMs: number }) {
    this.#service = options.service;
    this.#leaseMs = options.leaseMs;
  }

  /** What was read of the lease just now: may it be taken? */
  mayTake(lease: Lease | undefined, revision: number, now: Millis): boolean {
    if (lease === undefined || lease.holder === NOBODY || lease.holder === this.#service) return true;
    if (this.#seen?.revision !== revision) this.#seen = { revision, since: now };
    return now - this.#seen.since > this.#leaseMs;
  }

  /** While it cannot be read it may have been renewed any number of times. */
  receiveSilence(): void {
    this.#seen = undefined;
  }
}
