/** The scenarios beside the edit path in small, two at a time: that nothing is lost and everybody is served, never how long anything takes. */

import { expect, test } from "vitest";

import { EXPERIMENTS } from "./experiments.ts";
import { idle } from "./idle.bench.ts";
import { SYSTEM_NAMES } from "./systems/system.ts";

const OPTIONS = { small: true, seed: 1, loadProcesses: 1, systems: SYSTEM_NAMES, say: () => {} };

for (const { name, smallClients, run } of EXPERIMENTS) {
  test.concurrent(
    `${name}: in small, every check holds and there are figures of Coroom and of what it is compared with`,
    { timeout: 300_000 },
    async () => {
      const { figures } = await run({ ...OPTIONS, clients: smallClients });

      expect(Object.keys(figures)[0]).toBe("coroom");
      for (const [system, ofSystem] of Object.entries(figures)) {
        for (const [figure, value] of Object.entries(ofSystem)) expect(value, `${figure} of ${system}`).not.toBeNaN();
      }
    },
  );
}

test.concurrent("idle: Coroom can be measured alone", { timeout: 300_000 }, async () => {
  const { figures } = await idle.run({ ...OPTIONS, clients: idle.smallClients, systems: ["coroom"] });

  expect(Object.keys(figures)).toEqual(["coroom"]);
});
