/** The comparison with two rooms: each server delivers every edit once to every member. Times are not checked. */

import { expect, test } from "vitest";

import { comparePeers, markdown, PEERS_SCENARIOS, smaller } from "./peers.bench.ts";
import { WHOLE_SYSTEM_NAMES } from "./systems/whole.ts";

test("every server of the head-to-head bench delivers every edit, and has a column in the table", { timeout: 300_000 }, async () => {
  const options = { rounds: 1, seconds: 1, warmUpSeconds: 1, small: true, seed: 1 };
  const tables = await comparePeers(WHOLE_SYSTEM_NAMES, PEERS_SCENARIOS.map(smaller), options, () => {});

  expect(Object.keys(tables)).toHaveLength(PEERS_SCENARIOS.length);
  for (const [title, figures] of Object.entries(tables)) {
    for (const [figure, bySystem] of Object.entries(figures)) {
      expect(Object.keys(bySystem).sort(), figure).toEqual([...WHOLE_SYSTEM_NAMES].sort());
      for (const [system, values] of Object.entries(bySystem)) expect(values[0], `${figure} of ${system}`).not.toBeNaN();
    }
    expect(markdown(title, WHOLE_SYSTEM_NAMES, figures).split("\n")).toHaveLength(Object.keys(figures).length + 2);
  }
});
