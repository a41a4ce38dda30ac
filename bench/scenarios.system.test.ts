/**
 * The scenarios outside of the edit path, with few clients and two at a time: no edit is lost and every client is
 * served. Times are not checked.
 */

import { afterAll, beforeAll, expect, test } from "vitest";

import { SMALL_MODE } from "./growing-room.bench.ts";
import { idle, NOBODY_PINGS } from "./idle.bench.ts";
import { COMPARISONS } from "./scenarios.ts";
import { type Coroom, startCoroom } from "./systems/coroom.ts";
import { SYSTEM_NAMES } from "./systems/system.ts";

const OPTIONS = { small: true, seed: 1, loadProcesses: 1, systems: SYSTEM_NAMES, print: () => {} };

/** For the scenarios that change no process and no limit. */
let coroom: Coroom;
beforeAll(async () => {
  coroom = await startCoroom({ small: true, settings: { ...SMALL_MODE, ...NOBODY_PINGS } });
});
afterAll(() => coroom?.stop());

for (const { name, smallClients, run } of COMPARISONS) {
  test.concurrent(
    `${name}: with few clients every check passes, and Coroom and its comparison have figures`,
    { timeout: 300_000 },
    async () => {
      const { figures } = await run({ ...OPTIONS, clients: smallClients, coroom });

      expect(Object.keys(figures)[0]).toBe("coroom");
      for (const [system, ofSystem] of Object.entries(figures)) {
        for (const [figure, value] of Object.entries(ofSystem)) expect(value, `${figure} of ${system}`).not.toBeNaN();
      }
    },
  );
}

// Not beside the other run of idle, which uses the same rooms.
test("idle: Coroom can be measured alone", { timeout: 300_000 }, async () => {
  const { figures } = await idle.run({ ...OPTIONS, clients: idle.smallClients, systems: ["coroom"], coroom });

  expect(Object.keys(figures)).toEqual(["coroom"]);
});
