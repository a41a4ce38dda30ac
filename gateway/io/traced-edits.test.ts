import { expect, test } from "vitest";

import type { OwnerReply, SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import { appendSpanId, editSpanId } from "../../shared/io/traces/edit-traces.ts";
import { TestTraces } from "../../shared/testing/traces.ts";
import type { CommittedBatch } from "../../shared/wire/committed-edits.ts";
import { tracedEdits } from "./traced-edits.ts";

const GATEWAY = "g1" as GatewayId;
const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const EPOCH = 5 as Epoch;

function edit(counter: number): SubmittedEdit {
  const author = { user: "ada" as UserId, client: CLIENT };
  return { author, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(9) };
}

function batch(counter: number, seq: number): CommittedBatch {
  const runs = [{ client: CLIENT, counter, seq: seq as Seq, count: 1 }];
  return { epoch: EPOCH, firstSeq: seq as Seq, lastSeq: seq as Seq, runs, bytes: new Uint8Array() };
}

function refused(counter: number): OwnerReply {
  return { kind: "refused", epoch: EPOCH, client: CLIENT, counter, reason: "log-stalled", expected: counter, retryAfterMs: 1 };
}

function gateway() {
  const traces = new TestTraces();
  const hops = tracedEdits(GATEWAY, traces.edits);
  const send = (...edits: SubmittedEdit[]): void => hops.forwarded(ROOM, { kind: "edits", gateway: GATEWAY, edits });
  return { traces, hops, send, traced: (counter: number) => traces.edits.of(ROOM, CLIENT, counter)! };
}

test("[TRC17] an edit's span lasts from its receipt until the log is known to have it", () => {
  const { traces, hops, send, traced } = gateway();
  hops.received(ROOM, edit(1));
  traces.now += 10;
  send(edit(1));
  hops.answered(ROOM, refused(1));
  hops.received(ROOM, edit(1));
  send(edit(1), edit(2)); // The second edit arrived before this process recorded traces.
  traces.now += 10;
  hops.committed(ROOM, batch(1, 8));
  hops.committed(ROOM, batch(1, 8));
  hops.committed(ROOM, batch(2, 9));
  const events = ["sent to the owner", "refused", "taken again", "sent to the owner"];
  expect(traces.summary).toEqual([{ name: "edit", took: [1_000, 1_020], events }]);
  expect(traces.spans[0]).toMatchObject({
    traceId: traced(1).traceId,
    spanId: editSpanId(traced(1), GATEWAY),
    parentSpanId: undefined,
    attributes: { "coroom.edit.bytes": 9, "coroom.edit.seq": 8 },
  });
});

test("[TRC18] the span of an edit that the log already has belongs to the first copy's span; a refused first edit is an error", () => {
  const { traces, hops, traced } = gateway();
  for (const counter of [1, 2]) hops.received(ROOM, edit(counter));
  hops.answered(ROOM, { kind: "acked", epoch: EPOCH, client: CLIENT, counter: 1, seq: 8 as Seq, exact: true });
  hops.answered(ROOM, { kind: "not-first", epoch: EPOCH, client: CLIENT, counter: 2 });
  expect(traces.summary).toEqual([
    { name: "edit repeated", took: [1_000, 1_000] },
    { name: "edit", took: [1_000, 1_000], failed: "the room had edits already" },
  ]);
  const [repeat] = traces.spans;
  expect([repeat!.parentSpanId, repeat!.spanId === repeat!.parentSpanId]).toEqual([editSpanId(traced(1), GATEWAY), false]);
});

test("[TRC19] every gateway records one span for a delivery, whose parent is the append in its epoch", () => {
  const { traces, hops, traced } = gateway();
  let delivered = 0;
  hops.delivering(ROOM, batch(3, 8), () => {
    delivered += 1;
    traces.now += 4;
  });
  expect([delivered, traces.summary]).toEqual([1, [{ name: "process edits.out", took: [1_000, 1_004] }]]);
  expect(traces.spans[0]).toMatchObject({ parentSpanId: appendSpanId(traced(3), EPOCH), attributes: { "coroom.edit.seq": 8 } });
});
