import { expect, onTestFinished, test } from "vitest";

import type { Millis } from "../shared/ids.ts";
import { abortedBySignal, SAME_SIGNAL_MS, StopSignals } from "./run-until-signalled.ts";

test("[STOP1] the first signal stops in order, an immediate repeat is ignored, and a later signal ends the process", () => {
  const signals = new StopSignals();
  const at = (ms: number) => signals.receiveSignal(ms as Millis);
  expect(at(5_000)).toBe("stop");
  expect([at(5_000), at(5_000 + SAME_SIGNAL_MS - 1)]).toEqual(["nothing", "nothing"]);
  expect([at(5_000 + SAME_SIGNAL_MS), at(60_000)]).toEqual(["end-at-once", "end-at-once"]);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("[STOP2] %s stops a command in order; a terminal that closes sends SIGHUP", (name) => {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const before = signals.map((signal) => process.listeners(signal));
  onTestFinished(() => {
    for (const [index, signal] of signals.entries())
      for (const listener of process.listeners(signal)) if (!before[index]!.includes(listener)) process.off(signal, listener);
  });
  const aborted = abortedBySignal();
  process.emit(name, name);
  expect(aborted.aborted).toBe(true);
});
