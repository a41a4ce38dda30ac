/** The sums of many runs, as text and as one line of JSON. */

import { type FaultKind, FAULTS } from "./faults.ts";
import type { Outcome } from "./simulation.ts";
import { MINIMUM, type SizeName } from "./sizes.ts";

/** By kind of fault: how often it occurred, and how often it affected anything. */
type Strikes = { struck: number; met: number };

/** A thread's report of a run without failure. It is small because there are very many. */
export type Sum = Omit<Outcome, "faults" | "lines">;

export class Tally {
  readonly #runs: Record<SizeName, number> = {
    "small": 0,
    "large": 0,
    "small-edit-path": 0,
    "large-edit-path": 0,
    "local-owners": 0,
    "batches": 0,
    "first-content": 0,
  };
  readonly #failedSeeds: number[] = [];
  readonly #healedInMs: number[] = [];
  readonly #faults = new Map<FaultKind, Strikes>();
  readonly #counters = new Map<string, number>();
  #fullSize = 0;
  #steps = 0;
  #edits = 0;
  #acked = 0;

  get failures(): number {
    return this.#failedSeeds.length;
  }

  add({ seed, size, failure, steps, edits, acked, struck, healedInMs }: Sum): void {
    this.#runs[size] += 1;
    this.#steps += steps;
    this.#edits += edits;
    this.#acked += acked;
    this.#healedInMs.push(healedInMs);
    if (failure !== undefined) this.#failedSeeds.push(seed);
    const met = struck.filter((one) => one.met).length;
    if (steps >= MINIMUM.steps && edits >= MINIMUM.edits && met >= MINIMUM.faults) this.#fullSize += 1;
    for (const { kind, met: wasMet } of struck) {
      const known = this.#faults.get(kind) ?? { struck: 0, met: 0 };
      this.#faults.set(kind, { struck: known.struck + 1, met: known.met + Number(wasMet) });
    }
  }

  /** Adds a run that the main thread terminated. */
  addStuck(seed: number): void {
    this.#failedSeeds.push(seed);
  }

  addCounters(counters: readonly (readonly [name: string, value: number])[]): void {
    for (const [name, value] of counters) this.#counters.set(name, (this.#counters.get(name) ?? 0) + value);
  }

  /** `fullSize`: count of runs that reach `MINIMUM`, without faults that affected nothing. */
  summary(seconds: number): object {
    const faults = Object.fromEntries(
      Object.keys(FAULTS).map((kind) => [kind, this.#faults.get(kind as FaultKind) ?? { struck: 0, met: 0 }]),
    );
    return {
      runs: this.#runsCount,
      ...this.#runs,
      fullSize: this.#fullSize,
      failed: this.#failedSeeds,
      steps: this.#steps,
      edits: this.#edits,
      acked: this.#acked,
      healedMs: this.#healed(),
      seconds: Math.round(seconds),
      faults,
    };
  }

  *report(seconds: number): Iterable<string> {
    const bySize = Object.entries(this.#runs).filter(([, count]) => count > 0);
    yield `${this.#runsCount} runs (${bySize.map(([size, count]) => `${count} ${size}`).join(", ")}), ${this.failures} failed, ${this.#steps} steps, ${this.#edits} edits in the logs, ${this.#acked} taken for saved, ${seconds.toFixed(1)} s`;
    yield `${this.#fullSize} of them had at least ${MINIMUM.steps} steps, ${MINIMUM.edits} edits, and ${MINIMUM.faults} faults that something met`;
    yield `after the last fault all was well within (p50, p99, max): ${this.#healed()
      .map((ms) => `${(ms / 1_000).toFixed(1)} s`)
      .join(", ")}`;
    yield "faults, and how many of them were met by anything:";
    for (const kind of Object.keys(FAULTS)) {
      const { struck, met } = this.#faults.get(kind as FaultKind) ?? { struck: 0, met: 0 };
      yield `${String(struck).padStart(8)} ${String(met).padStart(8)}  ${kind}`;
    }
    yield "what the parts counted:";
    for (const [name, value] of this.#counters) yield `${String(value).padStart(8)}  ${name}`;
  }

  get #runsCount(): number {
    return Object.values(this.#runs).reduce((sum, count) => sum + count, 0);
  }

  #healed(): number[] {
    const sorted = this.#healedInMs.sort((a, b) => a - b);
    return [0.5, 0.99, 1].map((part) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0));
  }
}
