/**
 * A coverage-guided fuzzer. It mutates inputs of a pool. It keeps an input that runs new code, runs code in a new class
 * of counts, or does more work than any other input of its length. The seed decides every mutation.
 */

import { Prng } from "../../shared/collections/prng.ts";
import { mutate } from "../wire/mutate.ts";
import type { CodeCoverage } from "./coverage.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

type FuzzOptions = {
  readonly seed: number;
  /** Longer inputs are cut. */
  readonly bytesMax: number;
  /** Called before each input, so that an input that does not end is known. */
  readonly onInput: (input: Uint8Array) => void;
};
export type FuzzFinding = { readonly input: Uint8Array; readonly error: unknown };

/** A reading of CodeCoverage costs as much as hundreds of small inputs, so one reading serves several inputs. */
const BATCH = 64;
/** The counts of blocks are useful only after a single input. */
const SINGLE_CHANCE = 0.02;
/** Most inputs differ in one place from an input of the pool, so they reach the same code. */
const MORE_MUTATIONS_CHANCE = 0.4;
/** Share of inputs that are mutations of the inputs which ran new code. */
const LEADERS_CHANCE = 0.6;
/** The selection begins at the newest of these inputs, and goes to each earlier one with this probability. */
const NEXT_LEADER_CHANCE = 0.7;
const MORE_WORK = 1.1;
const SHRINK_RUNS_MAX = 2_000;

export class Fuzzer {
  readonly #target: FuzzTarget;
  readonly #coverage: CodeCoverage;
  readonly #options: FuzzOptions;
  readonly #prng: Prng;
  /** By length in powers of two: the most work of one input. */
  readonly #work = new Map<number, number>();
  readonly pool: Uint8Array[] = [];
  /** The inputs of the pool that ran new code, in order of discovery. */
  readonly #leaders: Uint8Array[] = [];
  /** Whether an input has run since the last reading of coverage. */
  #hasRun = true;
  runs = 0;
  accepted = 0;

  constructor(target: FuzzTarget, coverage: CodeCoverage, options: FuzzOptions) {
    this.#target = target;
    this.#coverage = coverage;
    this.#options = options;
    this.#prng = new Prng(options.seed);
  }

  /** Runs inputs one by one, without changing them. Returns the first that fails. */
  begin(inputs: readonly Uint8Array[]): FuzzFinding | undefined {
    for (const input of [...inputs].sort((a, b) => a.byteLength - b.byteLength)) {
      const finding = this.#runSingle(input);
      if (finding !== undefined) return finding;
    }
    return undefined;
  }

  /** Runs one batch of new inputs. Returns the first that fails. */
  step(): FuzzFinding | undefined {
    const batch = Array.from({ length: BATCH }, () => this.#newInput());
    if (this.#prng.chance(SINGLE_CHANCE)) return firstOf(batch, (input) => this.#runSingle(input));
    const finding = firstOf(batch, (input) => this.#run(input));
    if (finding !== undefined) return finding;
    this.#hasRun = false;
    return this.#coverage.read(false).isFirst ? firstOf(batch, (input) => this.#runSingle(input)) : undefined;
  }

  /** The shortest input found that fails with the same message. */
  shrink({ input, error }: FuzzFinding): FuzzFinding {
    let best = input;
    let left = SHRINK_RUNS_MAX;
    const isSame = (shorter: Uint8Array): boolean => {
      left -= 1;
      const finding = this.#run(shorter);
      return finding !== undefined && messageOf(finding.error) === messageOf(error);
    };
    for (let size = best.byteLength >> 1; size >= 1 && left > 0; size >>= 1) {
      for (let at = 0; at + size <= best.byteLength && left > 0;) {
        const shorter = new Uint8Array([...best.subarray(0, at), ...best.subarray(at + size)]);
        if (isSame(shorter)) best = shorter;
        else at += size;
      }
    }
    return { input: best, error };
  }

  #newInput(): Uint8Array {
    let input = this.#prng.chance(LEADERS_CHANCE) ? this.#anyLeader() : this.#anyOf(this.pool);
    do input = mutate(this.#prng, input, this.#anyOf(this.pool));
    while (this.#prng.chance(MORE_MUTATIONS_CHANCE));
    return input.subarray(0, this.#options.bytesMax);
  }

  #anyLeader(): Uint8Array {
    let at = this.#leaders.length - 1;
    while (at > 0 && this.#prng.chance(NEXT_LEADER_CHANCE)) at -= 1;
    return this.#leaders[at] ?? this.#anyOf(this.pool);
  }

  #anyOf(inputs: readonly Uint8Array[]): Uint8Array {
    return inputs[this.#prng.below(inputs.length)]!;
  }

  #run(input: Uint8Array): FuzzFinding | undefined {
    this.runs += 1;
    this.#hasRun = true;
    this.#options.onInput(input);
    try {
      if (this.#target.fuzz(input)) this.accepted += 1;
      return undefined;
    } catch (error) {
      return { input, error };
    }
  }

  #runSingle(input: Uint8Array): FuzzFinding | undefined {
    if (this.#hasRun) this.#coverage.skip();
    const finding = this.#run(input);
    const { isFirst, isNew, work } = this.#coverage.read(true);
    this.#hasRun = false;
    if (finding !== undefined) return finding;
    const length = Math.ceil(Math.log2(input.byteLength + 1));
    const costsMost = work > (this.#work.get(length) ?? 0) * MORE_WORK;
    if (costsMost) this.#work.set(length, work);
    if (isFirst) this.#leaders.push(input);
    if (isNew || costsMost) this.pool.push(input);
    return undefined;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function firstOf(inputs: readonly Uint8Array[], run: (input: Uint8Array) => FuzzFinding | undefined): FuzzFinding | undefined {
  for (const input of inputs) {
    const finding = run(input);
    if (finding !== undefined) return finding;
  }
  return undefined;
}
