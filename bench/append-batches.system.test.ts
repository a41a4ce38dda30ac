import { expect, test } from "vitest";

import { measureAppendBatches } from "./append-batches.bench.ts";

test("records are stored one by one and in batches, and both have figures", async () => {
  const [round] = await measureAppendBatches({ rooms: 20, seconds: 1, rounds: 1, natsServers: 3, syncAlways: false });
  for (const figures of [round!.alone, round!.batches]) expect(figures.perSecond).toBeGreaterThan(0);
});
