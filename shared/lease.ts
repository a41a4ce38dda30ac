/**
 * Which of several like processes works on a part of the log. One holds the lease and renews it; the others look
 * on, and take it when it has stood still for its whole length by their own clock: no clocks are compared.
 *
 * The lease only spares double work. That a service which lost it unknowingly harms nothing is settled
 * where it writes: whatever it writes names exactly what it stands on.
 */

import type { Millis } from "./ids.ts";

/**
 * One of the words that a service says where its data is: whoever finds it there, or a later one of the service,
 * finds all that was written before it.
 */
export type Said = { readonly service: string; readonly number: number };

/**
 * `floor`: what the holder made of every record up to this stream sequence is durable; a new holder reads on from there.
 * `said`: after that was so, by a holder that says words.
 */
export type Lease = { readonly holder: string; readonly floor: number; readonly said?: Said | undefined };

/** The holder's name when it was given back. */
export const NOBODY = "";

export class LeaseWatch {
  readonly #holder: string;
  readonly #leaseMs: number;
  #seen: { revision: number; since: Millis } | undefined;

  constructor(options: { holder: string; leaseMs: number }) {
    this.#holder = options.holder;
    this.#leaseMs = options.leaseMs;
  }

  /** What was read of the lease just now: may it be taken? */
  mayTake(lease: Lease | undefined, revision: number, now: Millis): boolean {
    if (lease === undefined || lease.holder === NOBODY || lease.holder === this.#holder) return true;
    if (this.#seen?.revision !== revision) this.#seen = { revision, since: now };
    return now - this.#seen.since > this.#leaseMs;
  }

  /** While it cannot be read it may have been renewed any number of times. */
  receiveSilence(): void {
    this.#seen = undefined;
  }
}

/** `superseded`: somebody wrote after that revision. */
export type Replaced = { readonly kind: "written"; readonly revision: number } | { readonly kind: "superseded" };

/** Where leases are kept. `revision` 0: there is none yet. */
export interface Leases {
  read(partition: number): Promise<{ readonly lease: Lease | undefined; readonly revision: number }>;
  /** Replaces exactly `revision`. */
  write(partition: number, lease: Lease, revision: number): Promise<Replaced>;
}
