/** Waits until a condition holds, and names the condition that did not. */

import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS_MIN = 20;
const POLL_MS_MAX = 100;
/** Polls of pages and over HTTP use as much CPU as what they wait for. So the delay after a change grows with the wait. */
const POLL_SHARE = 0.1;

export async function eventually(what: string, isTrue: () => boolean | Promise<boolean>, msMax = 60_000): Promise<void> {
  const start = performance.now();
  while (!(await isTrue())) {
    const waitedMs = performance.now() - start;
    if (waitedMs > msMax) throw new Error(`did not come true within ${msMax} ms: ${what}`);
    await sleep(Math.min(Math.max(POLL_MS_MIN, waitedMs * POLL_SHARE), POLL_MS_MAX));
  }
}
