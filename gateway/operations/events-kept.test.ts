import { expect, test } from "vitest";

import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import { type RoomId, roomKey, roomOf, type TenantId, tenantOf } from "../../shared/ids.ts";
import { RecentEventLog } from "./events-kept.ts";

const event = (generation: number): OperationsEvent => ({ kind: "placement_leads", generation, at: 1_000, by: "placement-1" });
const ALL = () => true;
const seqs = (kept: RecentEventLog, after: number, max = 10) => kept.since(after, max, ALL).events.map(({ seq }) => seq);

function keptOf(count: number, eventsMax = 5): RecentEventLog {
  const kept = new RecentEventLog({ eventsMax, takeoversMax: 5 });
  for (let seq = 1; seq <= count; seq++) kept.receiveEvent(seq, event(seq));
  return kept;
}

test("[EVK1] a reader receives the events after its number, and only the newest events if it is far behind", () => {
  expect(seqs(keptOf(4), 2)).toEqual([3, 4]);
  expect(seqs(keptOf(4), 4)).toEqual([]);
  expect(seqs(keptOf(20), 0)).toEqual([16, 17, 18, 19, 20]);
  expect(seqs(keptOf(20), 0, 2)).toEqual([19, 20]);
});

test("[EVK2] events that are hidden or unknown are skipped, and the number advances past them", () => {
  const kept = keptOf(3);
  kept.receiveEvent(4, undefined);
  expect(kept.since(0, 10, ({ at }) => at < 0)).toEqual({ events: [], takeovers: [], last: 4 });
  expect(kept.since(3, 10, ALL)).toEqual({ events: [], takeovers: [], last: 4 });
});

test("[EVK3] after the stream was created anew, its events reach readers that have higher numbers", () => {
  const kept = keptOf(20);
  kept.receiveEvent(1, event(1));
  expect(seqs(kept, 20)).toEqual([1]);
  expect(kept.since(20, 10, ALL).last).toBe(1);
});

test("[EVK4] takeovers are counted completely for each tenant, and remove no other event", () => {
  const kept = new RecentEventLog({ eventsMax: 5, takeoversMax: 3 });
  const claim = (tenant: string, room: string, at: number, from = "rs-1"): OperationsEvent => ({
    kind: "room_claimed",
    room: roomKey(tenant as TenantId, room as RoomId),
    epoch: 2,
    from,
    at,
    by: "rs-2",
  });
  kept.receiveEvent(1, event(1));
  for (let seq = 2; seq <= 5_001; seq++) kept.receiveEvent(seq, claim(seq % 2 === 0 ? "acme" : "other", `r${seq}`, 1_000 + seq));
  const shown = (after: number, mayShow: (event: OperationsEvent) => boolean = ALL) =>
    kept.since(after, 10, mayShow).takeovers.map(({ seq, count, rooms }) => [seq, count, rooms.map(roomOf).join()]);
  expect([seqs(kept, 0), kept.since(0, 10, ALL).last]).toEqual([[1], 5_001]);
  expect(shown(0)).toEqual([
    [2, 2_500, "r2,r4,r6"],
    [3, 2_500, "r3,r5,r7"],
  ]);
  expect(shown(5_000)).toEqual([[3, 2_500, "r3,r5,r7"]]);
  expect(shown(0, (shownEvent) => "room" in shownEvent && tenantOf(shownEvent.room) === "acme")).toEqual([[2, 2_500, "r2,r4,r6"]]);
  kept.receiveEvent(5_002, claim("acme", "late", 70_000));
  kept.receiveEvent(5_003, claim("acme", "of another", 70_000, "rs-3"));
  expect(shown(0).map(([seq]) => seq)).toEqual([3, 5_002, 5_003]); // As many as are kept. A minute later a takeover is counted separately.
  kept.receiveEvent(5_004, claim("acme", "late", 71_000)); // The lost server had returned and owned the room again.
  expect(shown(5_003)).toEqual([[5_002, 1, "late"]]);
  kept.receiveEvent(1, claim("acme", "anew", 80_000));
  expect(shown(0)).toEqual([[1, 1, "anew"]]);
});
