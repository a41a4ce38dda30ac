/**
 * Collects the errors of rejected promises that nothing handles, during one test. Without a listener, Node ends the
 * process. Vitest listens too, and would fail the run.
 */

import { onTestFinished } from "vitest";

export function collectUnhandledRejections(): readonly unknown[] {
  const others = process.listeners("unhandledRejection");
  const unhandled: unknown[] = [];
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", (error) => void unhandled.push(error));
  onTestFinished(() => {
    process.removeAllListeners("unhandledRejection");
    for (const other of others) process.on("unhandledRejection", other);
  });
  return unhandled;
}
