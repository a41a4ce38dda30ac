import { isValidSpanId, isValidTraceId } from "@opentelemetry/api";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, RoomKey, Seq } from "../../ids.ts";
import { TestTraces } from "../../testing/traces.ts";
import { appendSpanId, randomSpanId, EditTraces, editSpanId } from "./edit-traces.ts";
import { traceMetrics } from "./trace-metrics.ts";

const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const EDITS = 10_000;

function tracing(share: number, environment = "test"): EditTraces {
  return new EditTraces({ environment, share }, { send: () => {}, now: () => 0, metrics: traceMetrics(new Registry()) });
}

test("[TRC5] the decision to trace depends only on the edit; share 0 traces none, share 1 all, and a smaller share a part of a larger one's", () => {
  const tracedOf = (share: number): number[] =>
    Array.from({ length: EDITS }, (_, counter) => counter).filter((counter) => tracing(share).of(ROOM, CLIENT, counter) !== undefined);
  const [tenth, half] = [tracedOf(0.1), tracedOf(0.5)];
  expect(tracedOf(0)).toEqual([]);
  expect(tracedOf(1).length).toBe(EDITS);
  expect([Math.abs(tenth.length - EDITS / 10) < 100, Math.abs(half.length - EDITS / 2) < 200]).toEqual([true, true]);
  expect(tenth.every((counter) => half.includes(counter))).toBe(true);
});

test("[TRC6] an edit's trace has the same name in every process, and a different name from every other edit's", () => {
  const named = tracing(1).of(ROOM, CLIENT, 1)!;
  expect(named).toEqual(tracing(0.999_999).of(ROOM, CLIENT, 1));
  const others = [
    tracing(1, "staging").of(ROOM, CLIENT, 1)!,
    tracing(1).of("default.other" as RoomKey, CLIENT, 1)!,
    tracing(1).of(ROOM, "AAAAAAAAAAAAAAAB" as ClientId, 1)!,
    tracing(1).of(ROOM, CLIENT, 2)!,
  ];
  expect(new Set([named, ...others].map(({ traceId }) => traceId)).size).toBe(5);
  const spans = [editSpanId(named, "g1" as GatewayId), editSpanId(named, "g2" as GatewayId), randomSpanId(), randomSpanId()];
  spans.push(appendSpanId(named, 1 as Epoch), appendSpanId(named, 2 as Epoch), appendSpanId(others[3]!, 1 as Epoch));
  expect(new Set(spans).size).toBe(7);
  expect([isValidTraceId(named.traceId), ...spans.map(isValidSpanId)]).toEqual(Array.from({ length: 8 }, () => true));
});

test("[TRC7] each traced edit among edits committed together is found, with its seq", () => {
  const runs = [
    { client: CLIENT, counter: 7, seq: 21 as Seq, count: 2 },
    { client: "BBBBBBBBBBBBBBBB" as ClientId, counter: 1, seq: 23 as Seq, count: 1 },
  ];
  const found = [...tracing(1).among(ROOM, runs)].map(([{ client, counter }, seq]) => [client, counter, seq]);
  expect(found).toEqual([
    [CLIENT, 7, 21],
    [CLIENT, 8, 22],
    ["BBBBBBBBBBBBBBBB", 1, 23],
  ]);
  expect([...tracing(0).among(ROOM, runs)]).toEqual([]);
});

test("[TRC8] each span names its edit and the edit's writer", () => {
  const traces = new TestTraces();
  const edit = traces.edits.of(ROOM, CLIENT, 3)!;
  traces.edits.record(edit, { name: "hop", kind: 0, spanId: "s", parentSpanId: undefined, start: 1, end: 2, attributes: { more: true } });
  expect(traces.spans).toEqual([
    {
      name: "hop",
      kind: 0,
      traceId: edit.traceId,
      spanId: "s",
      parentSpanId: undefined,
      start: 1,
      end: 2,
      attributes: { "coroom.room": ROOM, "coroom.client": CLIENT, "coroom.edit.counter": 3, "more": true },
    },
  ]);
});
