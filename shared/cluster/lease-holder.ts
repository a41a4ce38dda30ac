/** Takes the lease on one log partition, renews it with its holder's progress, and releases it. */

import type { Log } from "../process/log.ts";
import type { Clock } from "../time/clock.ts";
import { pause, rethrowMistake, within } from "../time/pause.ts";
import { type Lease, type Leases, LeaseWatch, NO_HOLDER } from "./lease.ts";

type LeaseHolderOptions = {
  /** The unique name of this run of the service. */
  readonly holder: string;
  readonly leaseMs: number;
};

/** Maximum wait of a stop for a write. While JetStream stores nothing, an answer may never arrive, and the lease then expires. */
const STOP_MS_MAX = 1_000;

/** The facts that a holder stores in the lease for the next one. */
export type LeaseFacts = Pick<Lease, "floor" | "said" | "last">;

export class LeaseHolder {
  readonly #partition: number;
  readonly #leases: Leases;
  readonly #options: LeaseHolderOptions;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  /** The revision of this process's lease; undefined: it holds none. */
  #revision: number | undefined;
  #isRenewed = true;

  constructor(partition: number, leases: Leases, options: LeaseHolderOptions, deps: { clock: Clock; log: Log }) {
    this.#partition = partition;
    this.#leases = leases;
    this.#options = options;
    this.#deps = deps;
  }

  get isHeld(): boolean {
    return this.#revision !== undefined;
  }

  /** Whether the lease is held and the last renewal was stored. */
  get isConfirmed(): boolean {
    return this.isHeld && this.#isRenewed;
  }

  /** Resolves with the previous holder's facts; undefined: the signal came first. */
  async take(signal: AbortSignal): Promise<LeaseFacts | undefined> {
    const { clock, log } = this.#deps;
    const watch = new LeaseWatch(this.#options);
    while (!signal.aborted) {
      try {
        const { lease, revision } = await this.#leases.read(this.#partition);
        const facts = { floor: lease?.floor ?? 0, said: lease?.said, last: lease?.last };
        if (watch.mayTake(lease, revision, clock.now())) await this.#write({ holder: this.#options.holder, ...facts }, revision);
        if (this.isHeld) return facts;
      } catch (cause) {
        rethrowMistake(cause);
        watch.receiveSilence();
        log.warn({ partition: this.#partition, cause }, "a lease could not be read or taken");
      }
      await pause(clock, this.#options.leaseMs / 4, signal);
    }
    return undefined;
  }

  /**
   * Resolves when another process has the lease, or within a second of the signal. While NATS is unreachable no process
   * can take the lease, so it counts as held until another holder is known.
   */
  async renewUntilLost(facts: () => LeaseFacts, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (this.#revision !== undefined) {
      await pause(clock, this.#options.leaseMs / 4, signal);
      if (signal.aborted) return;
      await untilStopped(clock, this.#renew(facts(), this.#revision), signal);
    }
    log.warn({ partition: this.#partition }, "another process has taken over this part of the log");
  }

  async #renew(facts: LeaseFacts, revision: number): Promise<void> {
    this.#isRenewed = false;
    try {
      await this.#write({ holder: this.#options.holder, ...facts }, revision);
      this.#isRenewed = true;
    } catch (cause) {
      rethrowMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "a lease could not be renewed");
    }
  }

  async giveBack(facts: LeaseFacts): Promise<void> {
    if (this.#revision === undefined) return;
    try {
      await within(this.#deps.clock, STOP_MS_MAX, this.#write({ holder: NO_HOLDER, ...facts }, this.#revision), undefined);
    } catch (cause) {
      rethrowMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "a lease was not given back; it runs out by itself");
    }
    this.#revision = undefined;
  }

  async #write(lease: Lease, revision: number): Promise<void> {
    const write = await this.#leases.write(this.#partition, lease, revision);
    this.#revision = write.kind === "written" ? write.revision : undefined;
  }
}

/** Settles with the promise, or some time after the signal. */
function untilStopped(clock: Clock, promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => void clock.after(STOP_MS_MAX, end);
    const end = (): void => {
      signal.removeEventListener("abort", stop);
      resolve();
    };
    signal.addEventListener("abort", stop);
    promise.then(end, reject);
  });
}
