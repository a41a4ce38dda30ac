/** Takes the lease on one partition of the log, renews it with the floor of the day, and gives it back. */

import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import { LeaseWatch, NOBODY, type Leases } from "../shared/lease.ts";
import { pause, unlessMistake } from "../shared/pause.ts";

/** `service`: this run of the service; no other ever has its name. */
export type LeaseOptions = { readonly service: string; readonly documentsLeaseMs: number };

export class LeaseHost {
  readonly #partition: number;
  readonly #leases: Leases;
  readonly #options: LeaseOptions;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  /** The revision of our lease; undefined: we hold none. */
  #revision: number | undefined;

  constructor(partition: number, leases: Leases, options: LeaseOptions, deps: { clock: Clock; log: Log }) {
    this.#partition = partition;
    this.#leases = leases;
    this.#options = options;
    this.#deps = deps;
  }

  get isHeld(): boolean {
    return this.#revision !== undefined;
  }

  /** Resolves with the floor to read on from; undefined: the signal came first. */
  async take(signal: AbortSignal): Promise<number | undefined> {
    const { clock, log } = this.#deps;
    const { service, documentsLeaseMs: leaseMs } = this.#options;
    const watch = new LeaseWatch({ holder: service, leaseMs });
    while (!signal.aborted) {
      try {
        const { lease, revision } = await this.#leases.read(this.#partition);
        const floor = lease?.floor ?? 0;
        if (watch.mayTake(lease, revision, clock.now())) await this.#write({ holder: service, floor }, revision);
        if (this.isHeld) return floor;
      } catch (cause) {
        unlessMistake(cause);
        watch.receiveSilence();
        log.warn({ partition: this.#partition, cause }, "a lease could not be read or taken");
      }
      await pause(clock, leaseMs / 4, signal);
    }
    return undefined;
  }

  /** While NATS is away nobody can take the lease either: it is lost only to another holder. */
  async renewUntilLost(floor: () => number, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (this.#revision !== undefined) {
      await pause(clock, this.#options.documentsLeaseMs / 4, signal);
      if (signal.aborted) return;
      try {
        await this.#write({ holder: this.#options.service, floor: floor() }, this.#revision);
      } catch (cause) {
        unlessMistake(cause);
        log.warn({ partition: this.#partition, cause }, "a lease could not be renewed");
      }
    }
    log.warn({ partition: this.#partition }, "another document service reads this part of the log now");
  }

  async giveBack(floor: number): Promise<void> {
    if (this.#revision === undefined) return;
    try {
      await this.#write({ holder: NOBODY, floor }, this.#revision);
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "a lease was not given back; it runs out by itself");
    }
    this.#revision = undefined;
  }

  async #write(lease: { holder: string; floor: number }, revision: number): Promise<void> {
    const write = await this.#leases.write(this.#partition, lease, revision);
    this.#revision = write.kind === "written" ? write.revision : undefined;
  }
}
