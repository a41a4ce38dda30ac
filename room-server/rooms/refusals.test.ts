import { expect, test } from "vitest";

import type { ClientId, Millis } from "../../shared/ids.ts";
import { Refusals } from "./intake.ts";

const ann = "annannannannann1" as ClientId;
const bob = "bobbobbobbobbob1" as ClientId;
const at = (ms: number) => ms as Millis;

test("[REF1] after a refusal a writer's next gaps get no answer for a while; other writers' gaps do", () => {
  const refusals = new Refusals();
  expect(refusals.mayRefuse(ann, at(0))).toBe(true);
  refusals.noteRefusal(ann, 200, at(0));
  expect(refusals.mayRefuse(ann, at(199))).toBe(false);
  expect(refusals.mayRefuse(bob, at(199))).toBe(true);
  expect(refusals.mayRefuse(ann, at(200))).toBe(true);
});

test("[REF2] once the writer's next edit is accepted, a new gap is reported at once", () => {
  const refusals = new Refusals();
  refusals.noteRefusal(ann, 200, at(0));
  refusals.noteAccepted(ann);
  expect(refusals.mayRefuse(ann, at(1))).toBe(true);
});

test("[REF3] refusals before the given time are forgotten", () => {
  const refusals = new Refusals();
  refusals.noteRefusal(ann, 200, at(0));
  refusals.forgetExpired(at(100));
  expect(refusals.mayRefuse(ann, at(100))).toBe(false);
  refusals.forgetExpired(at(200));
  expect(refusals.mayRefuse(ann, at(0))).toBe(true);
});
