/**
 * Whether this process leads placement, by a lease that it renews. The lease contains the generation of the leader's
 * newest plan. A plan is carried out only once its generation is in the lease, so a deposed leader carries out nothing.
 * Rules LEA1 to LEA4.
 */

import type { Millis } from "../shared/ids.ts";
import { type Lease, LeaseWatch, type LeaseWrite } from "../shared/cluster/lease.ts";

export type LeadershipOptions = { readonly holder: string; readonly leaseMs: number };

const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;

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

  /** The generation of the newest plan, made by this leader or an earlier one. */
  get generation(): number {
    return this.#held?.generation ?? 0;
  }

  /**
   * The lease to write in place of the one that was read. Undefined: it may not be replaced. `planned`: the highest
   * generation of a planned entry. It is above the lease's generation if the lease was restored from an older copy, and
   * entries of plans below it would be ignored.
   */
  receiveRead(lease: Lease | undefined, revision: number, planned: number, now: Millis): Lease | undefined {
    if (!this.#watch.mayTake(lease, revision, now)) return undefined;
    return { holder: this.#options.holder, floor: Math.max(lease?.floor ?? 0, planned) };
  }

  /** The lease could not be read or written, so it is renewed before anything else. */
  receiveSilence(): void {
    this.#watch.receiveSilence();
    if (this.#held !== undefined) this.#held.renewedAt = LONG_AGO;
  }

  renewalDue(now: Millis): boolean {
    return this.#held !== undefined && now - this.#held.renewedAt >= this.#options.leaseMs / 4;
  }

  /** The lease to write in order to stay the leader, and the revision that it replaces. */
  renewal(generation: number): { lease: Lease; revision: number } | undefined {
    return this.#held === undefined
      ? undefined
      : { lease: { holder: this.#options.holder, floor: Math.max(generation, this.#held.generation) }, revision: this.#held.revision };
  }

  receiveWritten(lease: Lease, written: LeaseWrite, now: Millis): void {
    this.#held = written.kind === "written" ? { revision: written.revision, generation: lease.floor, renewedAt: now } : undefined;
  }
}
