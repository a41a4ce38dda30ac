import { expect, test } from "vitest";

import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import { EventsKept } from "./events-kept.ts";

const event = (generation: number): OperationsEvent => ({ kind: "placement_leads", generation, at: 1_000, by: "placement-1" });
const ALL = () => true;
const seqs = (kept: EventsKept, after: number, max = 10) => kept.since(after, max, ALL).events.map(({ seq }) => seq);

function keptOf(count: number, eventsMax = 5): EventsKept {
  const kept = new EventsKept({ eventsMax });
  for (let seq = 1; seq <= count; seq++) kept.receive(seq, event(seq));
  return kept;
}

test("[EVK1] who has some is told those since, and who is far behind the newest only", () => {
  expect(seqs(keptOf(4), 2)).toEqual([3, 4]);
  expect(seqs(keptOf(4), 4)).toEqual([]);
  expect(seqs(keptOf(20), 0)).toEqual([16, 17, 18, 19, 20]);
  expect(seqs(keptOf(20), 0, 2)).toEqual([19, 20]);
});

test("[EVK2] what may not be shown, or is not known, is passed over and counts as told", () => {
  const kept = keptOf(3);
  kept.receive(4, undefined);
  expect(kept.since(0, 10, ({ at }) => at < 0)).toEqual({ events: [], last: 4 });
  expect(kept.since(3, 10, ALL)).toEqual({ events: [], last: 4 });
});

test("[EVK3] after the stream was made anew its events are told to those who have higher numbers", () => {
  const kept = keptOf(20);
  kept.receive(1, event(1));
  expect(seqs(kept, 20)).toEqual([1]);
  expect(kept.last).toBe(1);
});
