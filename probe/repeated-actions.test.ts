import { expect, test } from "vitest";

import type { Millis } from "../shared/ids.ts";
import { RepeatedActions } from "./repeated-actions.ts";

const at = (ms: number): Millis => ms as Millis;

test("[PBE1] each timer repeats at its own interval, the first time within one interval", () => {
  const timers = new RepeatedActions(
    [
      { what: "often", everyMs: 100 },
      { what: "seldom", everyMs: 1_000 },
    ],
    () => 0.5,
    at(0),
  );
  const taken: string[] = [];
  while (timers.dueAt <= 1_000) {
    const now = timers.dueAt;
    for (const what of timers.take(now)) taken.push(`${what} ${now}`);
  }
  expect(taken.filter((one) => one.startsWith("often"))).toEqual(
    [50, 150, 250, 350, 450, 550, 650, 750, 850, 950].map((ms) => `often ${ms}`),
  );
  expect(taken.filter((one) => one.startsWith("seldom"))).toEqual(["seldom 500"]);
});

test("[PBE2] repetitions that a stalled process missed are skipped", () => {
  const timers = new RepeatedActions([{ what: "edit", everyMs: 100 }], () => 0, at(0));
  timers.take(at(0));
  expect(timers.take(at(5_050))).toEqual(["edit"]);
  expect(timers.dueAt).toBe(5_150);
});
