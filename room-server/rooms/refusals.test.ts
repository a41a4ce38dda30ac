import { expect, test } from "vitest";

import type { ClientId, Millis } from "../../shared/ids.ts";
import { Refusals } from "./refusals.ts";

const ann = "annannannannann1" as ClientId;
const bob = "bobbobbobbobbob1" as ClientId;
const at = (ms: number) => ms as Millis;

test("[REF1] after a refusal a writer's next gaps get no answer for a while; other writers' do", () => {
  const refusals = new Refusals();
  expect(refusals.maySay(ann, at(0))).toBe(true);
  refusals.refused(ann, 200, at(0));
  expect(refusals.maySay(ann, at(199))).toBe(false);
  expect(refusals.maySay(bob, at(199))).toBe(true);
  expect(refusals.maySay(ann, at(200))).toBe(true);
});

test("[REF2] once its next edit was taken, a new gap is told at once", () => {
  const refusals = new Refusals();
  refusals.refused(ann, 200, at(0));
  refusals.accepted(ann);
  expect(refusals.maySay(ann, at(1))).toBe(true);
});

test("[REF3] refusals of the past are forgotten", () => {
  const refusals = new Refusals();
  refusals.refused(ann, 200, at(0));
  refusals.forgetPast(at(100));
  expect(refusals.maySay(ann, at(100))).toBe(false);
  refusals.forgetPast(at(200));
  expect(refusals.maySay(ann, at(0))).toBe(true);
});
