/** What is said between the main thread and those that run seeds. */

import type { Outcome } from "./simulation.ts";
import type { SizeName } from "./sizes.ts";
import type { Sum } from "./tally.ts";

export type RunOrder =
  | { readonly kind: "run"; readonly seed: number; readonly size: SizeName; readonly verbose: boolean }
  /** The run, which fails, with as few faults as possible. */
  | { readonly kind: "minimize"; readonly failed: Outcome }
  /** The run up to a step that it does not come back from. */
  | { readonly kind: "retrace"; readonly seed: number; readonly size: SizeName; readonly stepsMax: number }
  | { readonly kind: "count" };

export type RunAnswer =
  | { readonly kind: "well"; readonly sum: Sum }
  | { readonly kind: "told"; readonly outcome: Outcome }
  | { readonly kind: "counters"; readonly counters: readonly (readonly [name: string, value: number])[] };

/** A thread's beginning: which bug is planted, and where it says how many steps it has begun. */
export type RunnerData = { readonly planted: string | undefined; readonly pulse: Int32Array };
