/** Messages between the main thread and the threads that run seeds. */

import type { Outcome } from "./simulation.ts";
import type { SizeName } from "./sizes.ts";
import type { Sum } from "./tally.ts";

export type RunOrder =
  | { readonly kind: "run"; readonly seed: number; readonly size: SizeName; readonly verbose: boolean }
  /** Repeats a failed run with as few faults as possible. */
  | { readonly kind: "minimize"; readonly failed: Outcome }
  /** Repeats a run up to `stepsMax`, before the step that does not return. */
  | { readonly kind: "retrace"; readonly seed: number; readonly size: SizeName; readonly stepsMax: number }
  | { readonly kind: "count" };

export type RunAnswer =
  | { readonly kind: "well"; readonly sum: Sum }
  | { readonly kind: "outcome"; readonly outcome: Outcome }
  | { readonly kind: "counters"; readonly counters: readonly (readonly [name: string, value: number])[] };

/** The start data of a thread: its planted bug, and a shared counter of begun steps. */
export type RunnerData = { readonly planted: string | undefined; readonly pulse: Int32Array };
