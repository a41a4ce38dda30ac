import type { Clock } from "./clock.ts";

/** Runs the function after each interval, first after one. The returned function stops it, also from within a run. */
export function every(clock: Clock, intervalMs: number, run: () => void): () => void {
  const next = (): void => {
    cancel = clock.after(intervalMs, next);
    run();
  };
  let cancel = clock.after(intervalMs, next);
  return () => cancel();
}
