/**
 * Holds the lease on one partition of the log, and counts it in passes as long as it does. A pass ends at the
 * first surprise, and the next begins at the floor.
 */

import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { LeaseWatch, type Leases, NOBODY } from "../../shared/lease.ts";
import { pause, unlessMistake } from "../../shared/pause.ts";
import type { Floor } from "./footing-host.ts";
import type { Counted } from "../reading/watched-boards.ts";
import { type PassDeps, PassHost, type PassOptions, type PassPorts } from "./pass-host.ts";

export type PartitionPorts = PassPorts & { readonly leases: Leases };
export type PartitionOptions = PassOptions & { readonly boardsLeaseMs: number; readonly boardBehindMsMax: number };
export type PartitionDeps = Omit<PassDeps, "onFloor">;

const NO_FLOOR: Floor = { edits: 0, said: undefined };
const RETRY_MS = 250;
const RETRY_MS_MAX = 4_000;

export class PartitionHost {
  readonly #partition: number;
  readonly #ports: PartitionPorts;
  readonly #options: PartitionOptions;
  readonly #deps: PartitionDeps;
  readonly #stopping = new AbortController();
  /** The revision of our lease; undefined: we hold none. */
  #lease: number | undefined;
  #pass: PassHost | undefined;
  #floor: Floor = NO_FLOOR;

  constructor(partition: number, ports: PartitionPorts, options: PartitionOptions, deps: PartitionDeps) {
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    deps.metrics.onAsked(() => this.#observe());
  }

  /** It is counted here. */
  get isHeld(): boolean {
    return this.#lease !== undefined;
  }

  /** What those who look at its rooms are to know. */
  get counted(): Counted {
    if (!this.isHeld || this.#stopping.signal.aborted) return "elsewhere";
    const { clock } = this.#deps;
    const isCurrent = this.#pass?.hasCaughtUp === true && clock.wallNow() - this.#pass.through <= this.#options.boardBehindMsMax;
    return isCurrent ? "current" : "behind";
  }

  /** Resolves once all that the streams have of the room now is counted, or after a while. */
  async countNow(room: RoomKey): Promise<void> {
    if (this.#lease !== undefined) await this.#pass?.countNow(room);
  }

  /** Resolves after `stop`, once all is in checkpoints and the lease given back. */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#waitForLease();
      if (this.#lease !== undefined) await this.#hold();
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #waitForLease(): Promise<void> {
    const { clock, log } = this.#deps;
    const watch = new LeaseWatch({ holder: this.#options.service, leaseMs: this.#options.boardsLeaseMs });
    while (!this.#stopping.signal.aborted) {
      try {
        const { lease, revision } = await this.#ports.leases.read(this.#partition);
        if (watch.mayTake(lease, revision, clock.now())) {
          this.#floor = { edits: lease?.floor ?? 0, said: lease?.said };
          await this.#writeLease(this.#options.service, revision);
          if (this.#lease !== undefined) {
            return log.info({ partition: this.#partition, after: this.#floor.edits }, "counting this part of the log from here on");
          }
        }
      } catch (cause) {
        unlessMistake(cause);
        watch.receiveSilence();
        log.warn({ partition: this.#partition, cause }, "a lease could not be read");
      }
      await pause(clock, this.#options.boardsLeaseMs / 4, this.#stopping.signal);
    }
  }

  async #writeLease(holder: string, revision: number): Promise<void> {
    const write = await this.#ports.leases.write(this.#partition, { holder, floor: this.#floor.edits, said: this.#floor.said }, revision);
    this.#lease = write.kind === "written" ? write.revision : undefined;
  }

  async #hold(): Promise<void> {
    const held = new AbortController();
    const passes = this.#passUntil(held.signal);
    await this.#renewUntilLost(this.#stopping.signal);
    held.abort();
    await passes;
    if (this.#lease !== undefined) await this.#giveBack(this.#lease);
    this.#lease = undefined;
    this.#pass = undefined;
    this.#deps.metrics.isCounting.set({ partition: String(this.#partition) }, 0);
    this.#deps.metrics.aside.remove({ partition: String(this.#partition) });
  }

  /** While NATS is away nobody can take the lease either: it is lost only to another holder. */
  async #renewUntilLost(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (this.#lease !== undefined) {
      await pause(clock, this.#options.boardsLeaseMs / 4, signal);
      if (signal.aborted) return;
      try {
        await this.#writeLease(this.#options.service, this.#lease);
      } catch (cause) {
        unlessMistake(cause);
        log.warn({ partition: this.#partition, cause }, "a lease could not be renewed");
      }
    }
    log.warn({ partition: this.#partition }, "another leaderboard counts this part of the log now");
  }

  async #giveBack(lease: number): Promise<void> {
    try {
      await this.#writeLease(NOBODY, lease);
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "a lease was not given back; it runs out by itself");
    }
  }

  async #passUntil(signal: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#deps;
    metrics.isCounting.set({ partition: String(this.#partition) }, 1);
    let [reason, failures, through] = ["lease", 0, 0 as UnixMillis];
    while (!signal.aborted) {
      metrics.passes.inc({ reason });
      const pass = new PassHost(this.#partition, { floor: this.#floor, through }, this.#ports, this.#options, {
        ...this.#deps,
        onFloor: (floor) => (this.#floor = floor),
      });
      this.#pass = pass;
      reason = await pass.run(signal);
      if (pass.hasCaughtUp) failures = 0;
      through = pass.through;
      if (this.#stopping.signal.aborted) await pass.drain();
      if (!signal.aborted) await pause(clock, Math.min(RETRY_MS * 2 ** failures++, RETRY_MS_MAX), signal);
    }
  }

  /** Of what another counts nothing is said. */
  #observe(): void {
    const { metrics, clock } = this.#deps;
    const partition = String(this.#partition);
    const pass = this.#lease === undefined ? undefined : this.#pass;
    if (pass === undefined) {
      for (const gauge of [metrics.rooms, metrics.pending, metrics.behind]) gauge.remove({ partition });
      return;
    }
    metrics.rooms.set({ partition }, pass.rooms.size);
    metrics.pending.set({ partition }, pass.rooms.pending);
    if (pass.through > 0) metrics.behind.set({ partition }, (clock.wallNow() - pass.through) / 1_000);
  }
}
