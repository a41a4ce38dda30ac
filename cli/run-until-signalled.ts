/** Keeps what was started until SIGINT or SIGTERM, then stops it in good order; a second signal ends at once. */

import type { Running } from "../shared/lifecycle.ts";

export async function runUntilSignalled(start: () => Promise<Running>): Promise<void> {
  let signals = 0;
  const signalled = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        signals += 1;
        if (signals > 1) process.exit(130);
        resolve();
      });
    }
  });
  const starting = start();
  await Promise.race([signalled, starting]);
  const running = await starting; // A signal during the start still stops what had started.
  await signalled;
  await running.stop();
  process.exit(0); // A library's timer must not keep a stopped process alive.
}
