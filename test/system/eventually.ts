/** Waits until a condition holds, and names the condition that did not. */

import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 20;

export async function eventually(what: string, isTrue: () => boolean | Promise<boolean>, msMax = 60_000): Promise<void> {
  const deadline = performance.now() + msMax;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`did not come true within ${msMax} ms: ${what}`);
    await sleep(POLL_MS);
  }
}
