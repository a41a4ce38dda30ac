import { expect, test } from "vitest";

import type { RoomKey } from "../shared/ids.ts";
import { describeEvent } from "./ops.ts";

test("[OPSW1] an event is one line, with text that contains spaces in quotes, and measured numbers rounded", () => {
  const budget = { kind: "room_budget", room: "acme.notes" as RoomKey, from: 0, to: 1, cost: 94, delayMs: 39.456638999999996 } as const;
  expect(describeEvent({ ...budget, at: 0, by: "rs-1" })).toBe(
    "1970-01-01T00:00:00.000Z room_budget room=acme.notes from=0 to=1 cost=94 delayMs=39.5 by=rs-1",
  );
  const ended = { kind: "room_ended", room: "acme.notes" as RoomKey, why: "failed", reason: "the claim took too long" } as const;
  expect(describeEvent({ ...ended, at: 0, by: "rs-1" })).toContain('why=failed reason="the claim took too long"');
});
