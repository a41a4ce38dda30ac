import fc from "fast-check";
import { expect, test } from "vitest";

import { liveThroughYear } from "./decide.bench.ts";

const now = (): number => 0;

/** `npm run bench -- decide` does the same with 100,000 rooms on 32 servers. */
test("[DEC10] over a year of lost and restarted servers, load stays balanced and replicas stay apart from owners, with few avoidable moves", () => {
  const year = liveThroughYear({ servers: 16, rooms: 16_000, weeks: 52, seed: 1, now });
  expect(year.imbalance).toBeLessThan(0.11); // Half a room above the allowed tenth.
  expect(year.moved / year.unavoidable).toBeLessThan(1.2);
  expect([year.replicasTooNear, year.restless]).toEqual([0, 0]);
});

test("[DEC11] the rooms of a lost server spread evenly over all servers of the other zones", () => {
  const { spread } = liveThroughYear({ servers: 32, rooms: 32_000, weeks: 0, seed: 1, now });
  expect(spread.most - spread.least).toBeLessThanOrEqual(2);
});

test("[DEC15] for any fleet and any sequence of rooms and servers, load is balanced, moves are few, and replicas are apart from owners", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 8, max: 24 }),
      fc.integer({ min: 100, max: 300 }),
      fc.integer({ min: 1, max: 1_000_000 }),
      (servers, roomsEach, seed) => {
        const year = liveThroughYear({ servers, rooms: servers * roomsEach, weeks: 6, seed, now });
        const chance = Math.max(0.1, 3 / Math.sqrt(roomsEach)); // Three standard deviations of the hash's chance.
        return (
          year.imbalance <= chance + 2 / roomsEach &&
          year.moved <= 1.2 * year.unavoidable + servers &&
          year.replicasTooNear === 0 &&
          year.restless === 0
        );
      },
    ),
    { numRuns: 25, seed: 20_261_121 },
  );
});
