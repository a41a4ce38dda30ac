/** Presence over an unreliable network: see `lossy-presence.ts`. */

import { expect, test } from "vitest";

import { LossyPresence } from "./lossy-presence.ts";

/** Seeds that failed once, with the cause. */
const REGRESSION_SEEDS = [
  102, // A removed field was forgotten before the room had shown its removal.
  26, // Fields that a client had shown over its former gateway stayed after that gateway removed the client.
  466, // A member that received another participant number while it changed gateways did not show its fields again.
];
const SEEDS = [...REGRESSION_SEEDS, ...Array.from({ length: 80 }, (_, index) => 2_000 + index)];

test("[PRG1] after lost, repeated and late messages every client finally sees all participants and no others", () => {
  const wrong = SEEDS.flatMap((seed) => new LossyPresence(seed).run().wrong.map((what) => `seed ${seed}: ${what}`));
  expect(wrong).toEqual([]);
});
