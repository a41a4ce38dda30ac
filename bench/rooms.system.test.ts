import { expect, test } from "vitest";

import { benchRooms } from "./rooms.bench.ts";

test(
  "[BRM1] whichever document services die, come and go meanwhile, every room's document is its writer's",
  { timeout: 300_000 },
  async () => {
    const outcome = await benchRooms({ rooms: 60, editsPerRoom: 60, activeRooms: 5, services: 2, idleSeconds: 1, seed: 1, say: () => {} });
    expect(outcome).toMatchObject({ rooms: 60, edits: 3_600 });
    expect(outcome.many.live).toBeGreaterThan(0);
  },
);
