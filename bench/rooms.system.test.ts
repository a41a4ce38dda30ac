import { expect, test } from "vitest";

import { soakLength } from "../test/soak.ts";
import { benchRooms } from "./rooms.bench.ts";

test(
  "[BRM1] every room's document equals its writer's text while document services are killed, stopped and started",
  { timeout: soakLength(300_000, 3_600_000) },
  async () => {
    const rooms = soakLength(24, 600);
    const outcome = await benchRooms({ rooms, editsPerRoom: 60, activeRooms: 5, services: 2, idleSeconds: 1, seed: 1, print: () => {} });
    expect(outcome).toMatchObject({ rooms, edits: 60 * rooms });
    expect(outcome.many.live).toBeGreaterThan(0);
  },
);
