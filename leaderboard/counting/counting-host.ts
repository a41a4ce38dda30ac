/** Holds the lease on one partition of the log, runs its passes, and reports how current its rooms are. `partition.ts` decides. */

import { assertNever } from "../../shared/assert.ts";
import type { Leases } from "../../shared/cluster/lease.ts";
import { type LeaseFacts, LeaseHolder } from "../../shared/cluster/lease-holder.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Counted } from "../reading/watched-boards.ts";
import { CountedPartition, type PartitionEffect, type PartitionInput } from "./partition.ts";
import { type PassDeps, PassHost, type PassPorts } from "./pass-host.ts";
import type { PassOptions } from "./pass.ts";

export type CountingPorts = PassPorts & { readonly leases: Leases };
export type CountingOptions = PassOptions & {
  readonly boardsLeaseMs: number;
  readonly boardBehindMsMax: number;
  readonly boardsDrainMsMax: number;
};
export type CountingDeps = PassDeps;

export class CountingHost {
  readonly #partition: number;
  readonly #ports: CountingPorts;
  readonly #options: CountingOptions;
  readonly #deps: CountingDeps;
  readonly #stopping = new AbortController();
  readonly #lease: LeaseHolder;
  readonly #state = new CountedPartition();
  #running: PassHost | undefined;
  #callOff: () => void = () => {};
  #onLeft: (facts: LeaseFacts) => void = () => {};

  constructor(partition: number, ports: CountingPorts, options: CountingOptions, deps: CountingDeps) {
    this.#partition = partition;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#lease = new LeaseHolder(partition, ports.leases, { holder: options.service, leaseMs: options.boardsLeaseMs }, deps);
    deps.metrics.onAsked(() => this.#observe());
  }

  /** Whether this process counts the partition. */
  get isHeld(): boolean {
    return this.#lease.isHeld;
  }

  get counted(): Counted {
    if (!this.isHeld || this.#stopping.signal.aborted) return "elsewhere";
    const behindMs = this.#deps.clock.wallNow() - (this.#running?.pass.through ?? 0);
    return this.#running?.pass.hasCaughtUp === true && behindMs <= this.#options.boardBehindMsMax ? "current" : "behind";
  }

  /** Resolves once all present entries of the room are counted, or after a timeout. */
  async countNow(room: RoomKey): Promise<void> {
    if (this.isHeld) await this.#running?.countNow(room);
  }

  /** Resolves after `stop`, once all counted entries are in checkpoints and the lease is released. */
  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const facts = await this.#lease.take(this.#stopping.signal);
      if (facts !== undefined) await this.#hold(facts);
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #hold(facts: LeaseFacts): Promise<void> {
    const { log, metrics } = this.#deps;
    const partition = String(this.#partition);
    log.info({ partition: this.#partition, after: facts.floor }, "counting this part of the log from here on");
    metrics.isCounting.set({ partition }, 1);
    const left = new Promise<LeaseFacts>((resolve) => (this.#onLeft = resolve));
    this.#receivePartitionInput({ kind: "lease-taken", facts });
    await this.#lease.renewUntilLost(() => this.#state.facts, this.#stopping.signal);
    this.#receivePartitionInput({ kind: this.#stopping.signal.aborted ? "stop" : "lease-lost" });
    await this.#lease.giveBack(await left);
    this.#running = undefined;
    metrics.isCounting.set({ partition }, 0);
    metrics.aside.remove({ partition });
  }

  #receivePartitionInput(input: PartitionInput): void {
    for (const effect of this.#state.receiveInput(input)) this.#carryOut(effect);
  }

  #carryOut(effect: PartitionEffect): void {
    switch (effect.kind) {
      case "begin-pass":
        return this.#beginPass(effect);
      case "wait":
        this.#callOff = this.#deps.clock.after(effect.ms, () => this.#receivePartitionInput({ kind: "tick" }));
        return;
      case "stop-pass":
        return this.#running?.stop();
      case "drain-pass":
        void this.#running?.drain(this.#options.boardsDrainMsMax).then(() => this.#receivePartitionInput({ kind: "drained" }));
        return;
      case "leave":
        this.#callOff();
        return this.#onLeft(effect.facts);
      default:
        return assertNever(effect);
    }
  }

  #beginPass({ floor, through, reason }: PartitionEffect & { kind: "begin-pass" }): void {
    const { metrics } = this.#deps;
    metrics.passes.inc({ reason });
    metrics.aside.set({ partition: String(this.#partition) }, 0);
    const running = new PassHost(this.#partition, { floor, through }, this.#ports, this.#options, this.#deps, (raised) =>
      this.#receivePartitionInput({ kind: "floor-raised", floor: raised }),
    );
    this.#running = running;
    void running.run().then(() => this.#receivePartitionInput({ kind: "pass-ended", pass: running.pass }));
  }

  /** A partition that another process counts reports nothing. */
  #observe(): void {
    const { metrics, clock } = this.#deps;
    const partition = String(this.#partition);
    const pass = this.isHeld ? this.#running?.pass : undefined;
    if (pass === undefined) {
      for (const gauge of [metrics.rooms, metrics.pending, metrics.behind]) gauge.remove({ partition });
      return;
    }
    metrics.rooms.set({ partition }, pass.rooms.size);
    metrics.pending.set({ partition }, pass.rooms.pending);
    if (pass.through > 0) metrics.behind.set({ partition }, (clock.wallNow() - pass.through) / 1_000);
  }
}
