/** Keeps what was started until SIGINT or SIGTERM, then stops it in good order; another signal later ends at once. */

import type { Millis } from "../shared/ids.ts";
import type { Running } from "../shared/lifecycle.ts";
import { StopSignals } from "./stop-signals.ts";

export async function runUntilSignalled(start: () => Promise<Running>): Promise<void> {
  const signals = new StopSignals();
  const signalled = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        const asked = signals.receive(performance.now() as Millis);
        if (asked === "end-at-once") process.exit(130);
        if (asked === "stop") resolve();
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
