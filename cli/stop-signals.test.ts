import { expect, test } from "vitest";

import type { Millis } from "../shared/ids.ts";
import { SAME_SIGNAL_MS, StopSignals } from "./run-until-signalled.ts";

test("[STOP1] the first signal stops in order, an immediate repeat is ignored, and a later signal ends the process", () => {
  const signals = new StopSignals();
  const at = (ms: number) => signals.receiveSignal(ms as Millis);
  expect(at(5_000)).toBe("stop");
  expect([at(5_000), at(5_000 + SAME_SIGNAL_MS - 1)]).toEqual(["nothing", "nothing"]);
  expect([at(5_000 + SAME_SIGNAL_MS), at(60_000)]).toEqual(["end-at-once", "end-at-once"]);
});
