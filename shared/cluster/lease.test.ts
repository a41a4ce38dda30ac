import { expect, test } from "vitest";

import type { Millis } from "../ids.ts";
import { LeaseWatch, NO_HOLDER } from "./lease.ts";

const at = (millis: number) => millis as Millis;
const theirs = { holder: "other", floor: 7 };
const watch = () => new LeaseWatch({ holder: "me", leaseMs: 1_000 });

test("[LSE1] a process may immediately take a lease that is free or its own", () => {
  expect(watch().mayTake(undefined, 0, at(0))).toBe(true);
  expect(watch().mayTake({ holder: NO_HOLDER, floor: 7 }, 3, at(0))).toBe(true);
  expect(watch().mayTake({ holder: "me", floor: 7 }, 3, at(0))).toBe(true);
});

test("[LSE2] a process may take another's lease that was not renewed for its full duration", () => {
  const standby = watch();
  expect(standby.mayTake(theirs, 3, at(0))).toBe(false);
  expect(standby.mayTake(theirs, 4, at(900))).toBe(false); // Renewed: a new revision.
  expect(standby.mayTake(theirs, 4, at(1_900))).toBe(false);
  expect(standby.mayTake(theirs, 4, at(1_901))).toBe(true);
});

test("[LSE3] time in which the lease could not be read does not count against its holder", () => {
  const standby = watch();
  expect(standby.mayTake(theirs, 3, at(0))).toBe(false);
  standby.receiveSilence();
  expect(standby.mayTake(theirs, 3, at(5_000))).toBe(false);
  expect(standby.mayTake(theirs, 3, at(6_001))).toBe(true);
});
