import { expect, test } from "vitest";

import type { ClientId, RoomKey } from "../../ids.ts";
import { TestTraces } from "../../testing/traces.ts";
import type { OpenHop, TracedEdit } from "./edit-traces.ts";
import { OpenHops } from "./open-hops.ts";

const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;

function opened(options: { openMax: number; openMsMax: number }) {
  const traces = new TestTraces();
  const open = new OpenHops(traces.edits, options);
  const edit = (counter: number): TracedEdit => traces.edits.of("default.plan" as RoomKey, CLIENT, counter)!;
  const hop = (name: string): OpenHop => {
    return { name, kind: 0, spanId: name, parentSpanId: undefined, start: traces.now, attributes: { first: 1 }, events: [] };
  };
  const unfinished = async (): Promise<string> => traces.registry.getSingleMetricAsString("coroom_trace_unfinished_total");
  return { traces, open, edit, hop, unfinished };
}

test("[TRC9] a hop is reported once, at its end, with its events and attributes", () => {
  const { traces, open, edit, hop } = opened({ openMax: 10, openMsMax: 1_000 });
  open.begin(edit(1), hop("one"));
  traces.now += 5;
  open.note(edit(1), "noted", { why: "so" });
  traces.now += 5;
  open.end(edit(1), { attributes: { last: 2 } });
  open.end(edit(1), {});
  open.note(edit(1), "too late");
  expect(traces.spans).toEqual([
    expect.objectContaining({ name: "one", start: 1_000, end: 1_010, events: [{ name: "noted", at: 1_005, attributes: { why: "so" } }] }),
  ]);
  expect(traces.spans[0]!.attributes).toMatchObject({ first: 1, last: 2 });
  expect(open.size).toBe(0);
});

test("[TRC28] a hop keeps only a limited number of its first events", () => {
  const { traces, open, edit, hop } = opened({ openMax: 10, openMsMax: 1_000 });
  open.begin(edit(1), hop("one"));
  for (let repeat = 0; repeat < 1_000; repeat++) open.note(edit(1), "refused");
  open.end(edit(1), {});
  expect(traces.spans[0]!.events).toHaveLength(32);
});

test("[TRC10] above the limit of hops or time the oldest hop is released, reported as unfinished, and counted", async () => {
  const { traces, open, edit, hop, unfinished } = opened({ openMax: 2, openMsMax: 1 });
  for (const counter of [1, 2, 3]) open.begin(edit(counter), hop(`hop ${counter}`));
  expect(traces.summary).toEqual([{ name: "hop 1", took: [1_000, 1_000], failed: "not followed to its end" }]);
  traces.now += 1_000;
  open.begin(edit(4), hop("hop 4"));
  expect(traces.spans.map(({ name }) => name)).toEqual(["hop 1", "hop 2", "hop 3"]);
  expect([open.size, (await unfinished()).includes(" 3")]).toEqual([1, true]);
});
