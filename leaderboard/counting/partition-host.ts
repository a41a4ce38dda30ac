/**
 * Holds the lease on one partition of the log, and counts it in passes as long as it does. A pass ends at the
 * first surprise, and the next begins at the floor.
 */

import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Leases } from "../../shared/lease.ts";
import { type LeaseFacts, LeaseHolder } from "../../shared/lease-holder.ts";
import { pause } from "../../shared/pause.ts";
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
  readonly #lease: LeaseHolder;
  #pass: PassHost | undefined;
  #floor: Floor = NO_FLOOR;

  constructor(partition: number, ports: PartitionPorts, options: PartitionOptions, deps: PartitionDeps) {
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#lease = new LeaseHolder(partition, ports.leases, { holder: options.service, leaseMs: options.boardsLeaseMs }, deps);
    deps.metrics.onAsked(() => this.#observe());
  }

  /** It is counted here. */
  get isHeld(): boolean {
    return this.#lease.isHeld;
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
    if (this.isHeld) await this.#pass?.countNow(room);
  }

  /** Resolves after `stop`, once all is in checkpoints and the lease given back. */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const before = await this.#lease.take(this.#stopping.signal);
      if (before !== undefined) await this.#hold(before);
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #hold(before: LeaseFacts): Promise<void> {
    this.#floor = { edits: before.floor, said: before.said };
    this.#deps.log.info({ partition: this.#partition, after: this.#floor.edits }, "counting this part of the log from here on");
    const held = new AbortController();
    const passes = this.#passUntil(held.signal);
    await this.#lease.renewUntilLost(() => this.#facts, this.#stopping.signal);
    held.abort();
    await passes;
    await this.#lease.giveBack(this.#facts);
    this.#pass = undefined;
    this.#deps.metrics.isCounting.set({ partition: String(this.#partition) }, 0);
    this.#deps.metrics.aside.remove({ partition: String(this.#partition) });
  }

  get #facts(): LeaseFacts {
    return { floor: this.#floor.edits, said: this.#floor.said };
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
    const pass = this.isHeld ? this.#pass : undefined;
    if (pass === undefined) {
      for (const gauge of [metrics.rooms, metrics.pending, metrics.behind]) gauge.remove({ partition });
      return;
    }
    metrics.rooms.set({ partition }, pass.rooms.size);
    metrics.pending.set({ partition }, pass.rooms.pending);
    if (pass.through > 0) metrics.behind.set({ partition }, (clock.wallNow() - pass.through) / 1_000);
  }
}
