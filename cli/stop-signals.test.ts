import { expect, test } from "vitest";

import type { Millis } from "../shared/ids.ts";
import { SAME_SIGNAL_MS, StopSignals } from "./stop-signals.ts";

test("[STOP1] a signal stops in good order, what comes with it changes nothing, and a later one ends at once", () => {
  const signals = new StopSignals();
  const at = (ms: number) => signals.receive(ms as Millis);
  expect(at(5_000)).toBe("stop");
  expect([at(5_000), at(5_000 + SAME_SIGNAL_MS - 1)]).toEqual(["nothing", "nothing"]);
  expect([at(5_000 + SAME_SIGNAL_MS), at(60_000)]).toEqual(["end-at-once", "end-at-once"]);
});
