/**
 * Stops a command in order at SIGINT, SIGTERM or SIGHUP, which a closed terminal sends. A later second signal ends the
 * process immediately.
 */

import type { Millis } from "../shared/ids.ts";
import type { Running } from "../shared/process/lifecycle.ts";

/** Time between the two signals of one key press on a busy machine. People wait longer before they press again. */
export const SAME_SIGNAL_MS = 1_000;

/**
 * The meaning of a signal. Under `npm start` one Ctrl-C arrives twice: from the terminal and from npm, which forwards
 * its own. So only a later signal ends the process immediately.
 */
export class StopSignals {
  #first: Millis | undefined;

  receiveSignal(now: Millis): "stop" | "nothing" | "end-at-once" {
    if (this.#first === undefined) {
      this.#first = now;
      return "stop";
    }
    return now - this.#first < SAME_SIGNAL_MS ? "nothing" : "end-at-once";
  }
}

/** Aborted by the first SIGINT, SIGTERM or SIGHUP. A later second signal ends the process immediately. */
export function abortedBySignal(): AbortSignal {
  const signals = new StopSignals();
  const aborted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      const asked = signals.receiveSignal(performance.now() as Millis);
      if (asked === "end-at-once") process.exit(130);
      if (asked === "stop") aborted.abort();
    });
  }
  return aborted.signal;
}

export async function runUntilSignalled(start: () => Promise<Running>): Promise<void> {
  const signal = abortedBySignal();
  const signalled = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  const starting = start();
  await Promise.race([signalled, starting]);
  const running = await starting; // A signal during the start also stops the parts that started.
  await signalled;
  await running.stop();
  process.exit(0); // A timer of a library must not keep a stopped process alive.
}
