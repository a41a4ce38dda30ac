/** Waits for a condition. */

import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 5;

/** Throws if it is not true within `msMax`. */
export async function until(what: string, isTrue: () => boolean, msMax: number): Promise<void> {
  const deadline = performance.now() + msMax;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`timed out after ${msMax} ms: ${what}`);
    await sleep(POLL_MS);
  }
}
