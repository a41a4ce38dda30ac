/** Waits on the host's clock, no longer than the signal allows. */

import { AssertionError } from "../assert.ts";
import type { Clock } from "./clock.ts";

export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      callOff();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const callOff = clock.after(ms, end);
    signal?.addEventListener("abort", end);
  });
}

/** Resolves to `late` if the promise takes longer. */
export function within<Value, Late>(clock: Clock, ms: number, promise: Promise<Value>, late: Late): Promise<Value | Late> {
  return new Promise((resolve, reject) => {
    const callOff = clock.after(ms, () => resolve(late));
    promise.then(resolve, reject).finally(callOff);
  });
}

/** Rethrows programming errors, for a catch that expects only failures of other systems. */
export function rethrowMistake(error: unknown): void {
  if (error instanceof AssertionError) throw error;
}
