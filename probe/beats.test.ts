import { expect, test } from "vitest";

import type { Millis } from "../shared/ids.ts";
import { Beats } from "./budget.ts";

const at = (ms: number): Millis => ms as Millis;

test("[PBE1] each timer repeats at its own interval, the first time within one interval", () => {
  const beats = new Beats(
    [
      { what: "often", everyMs: 100 },
      { what: "seldom", everyMs: 1_000 },
    ],
    () => 0.5,
    at(0),
  );
  const taken: string[] = [];
  while (beats.dueAt <= 1_000) {
    const now = beats.dueAt;
    for (const what of beats.take(now)) taken.push(`${what} ${now}`);
  }
  expect(taken.filter((one) => one.startsWith("often"))).toEqual(
    [50, 150, 250, 350, 450, 550, 650, 750, 850, 950].map((ms) => `often ${ms}`),
  );
  expect(taken.filter((one) => one.startsWith("seldom"))).toEqual(["seldom 500"]);
});

test("[PBE2] beats that a stalled process missed are skipped", () => {
  const beats = new Beats([{ what: "edit", everyMs: 100 }], () => 0, at(0));
  beats.take(at(0));
  expect(beats.take(at(5_050))).toEqual(["edit"]);
  expect(beats.dueAt).toBe(5_150);
});
