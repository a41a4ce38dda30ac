/** The busy room with few neighbours: every edit reaches all members, and every leg has figures. Times are not checked. */

import { expect, test } from "vitest";

import { HOT_KINDS, measureHotRoom } from "./hot-room.bench.ts";

test("[HOT1] in every leg all edits reach all members, and the neighbours have latencies", { timeout: 300_000 }, async () => {
  const lines: string[] = [];
  const figures = await measureHotRoom(
    { rooms: 4, seconds: 1, rounds: 1, levels: [1], kinds: HOT_KINDS },
    (line) => lines.push(line),
    true,
  );

  expect(Object.keys(figures)).toEqual(["alone", ...HOT_KINDS.flatMap((kind) => [`${kind} 1x same`, `${kind} 1x other`])]);
  expect(lines).toHaveLength(7);
  for (const [leg, ofLeg] of Object.entries(figures))
    for (const [figure, value] of Object.entries(ofLeg)) expect(value, `${figure} of ${leg}`).not.toBeNaN();
});
