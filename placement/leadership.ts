/**
 * Whether this process leads placement: by a lease that it renews, whose floor is the generation of its newest plan. A
 * plan is carried out only after its generation stands in the lease, so a leader that was succeeded without knowing
 * carries out nothing any more. Rules LEA1 to LEA4.
 */

import type { Millis } from "../shared/ids.ts";
import { type Lease, LeaseWatch, type Replaced } from "../shared/lease.ts";

export type LeadershipOptions = { readonly holder: string; readonly leaseMs: number };

export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #watch: LeaseWatch;
  #held: { revision: number; generation: number; renewedAt: Millis } | undefined;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#watch = new LeaseWatch(options);
  }

  get leads(): boolean {
    return this.#held !== undefined;
  }

  /** Of the newest plan, by this leader or those before it. */
  get generation(): number {
    return this.#held?.generation ?? 0;
  }

  /** What was read of the lease while another holds it: what to write over it, if it may be taken. */
  receiveRead(lease: Lease | undefined, revision: number, now: Millis): Lease | undefined {
    return this.#watch.mayTake(lease, revision, now) ? { holder: this.#options.holder, floor: lease?.floor ?? 0 } : undefined;
  }

  /** It could not be read. */
  receiveSilence(): void {
    this.#watch.receiveSilence();
  }

  renewalDue(now: Millis): boolean {
    return this.#held !== undefined && now - this.#held.renewedAt >= this.#options.leaseMs / 4;
  }

  /** What to write to go on leading, and over which revision. */
  renewal(generation: number): { lease: Lease; revision: number } | undefined {
    return this.#held === undefined
      ? undefined
      : { lease: { holder: this.#options.holder, floor: Math.max(generation, this.#held.generation) }, revision: this.#held.revision };
  }

  receiveWritten(lease: Lease, written: Replaced, now: Millis): void {
    this.#held = written.kind === "written" ? { revision: written.revision, generation: lease.floor, renewedAt: now } : undefined;
  }
}
