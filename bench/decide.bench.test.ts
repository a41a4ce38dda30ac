import fc from "fast-check";
import { expect, test } from "vitest";

import { liveThroughYear } from "./decide.bench.ts";

const now = (): number => 0;

/** The same with 100,000 rooms on 32 servers: `node dist/bench/decide-main.js`. */
test("[DEC10] over a year of lost and restarted servers balance holds, copies stand apart, and no more moves than must", () => {
  const year = liveThroughYear({ servers: 16, rooms: 16_000, weeks: 52, seed: 1, now });
  expect(year.imbalance).toBeLessThan(0.11); // Half a room above the tenth that is allowed.
  expect(year.moved / year.unavoidable).toBeLessThan(1.2);
  expect([year.copiesTooNear, year.restless]).toEqual([0, 0]);
});

test("[DEC11] the rooms of a server that is lost spread evenly over all others that stand apart from it", () => {
  const { spread } = liveThroughYear({ servers: 32, rooms: 32_000, weeks: 0, seed: 1, now });
  expect(spread.most - spread.least).toBeLessThanOrEqual(2);
});

test("[DEC15] so it is with any fleet, whichever rooms and servers come and go", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 8, max: 24 }),
      fc.integer({ min: 100, max: 300 }),
      fc.integer({ min: 1, max: 1_000_000 }),
      (servers, roomsEach, seed) => {
        const year = liveThroughYear({ servers, rooms: servers * roomsEach, weeks: 6, seed, now });
        const chance = Math.max(0.1, 3 / Math.sqrt(roomsEach)); // Three standard deviations of what hashing does by chance.
        return (
          year.imbalance <= chance + 2 / roomsEach &&
          year.moved <= 1.2 * year.unavoidable + servers &&
          year.copiesTooNear === 0 &&
          year.restless === 0
        );
      },
    ),
    { numRuns: 25, seed: 20_261_121 },
  );
});
