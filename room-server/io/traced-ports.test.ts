import { expect, test } from "vitest";

import type { OwnerReply, SubmittedEdit, ToOwner } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { appendSpanId, editSpanId } from "../../shared/io/traces/edit-traces.ts";
import { TestTraces } from "../../shared/testing/traces.ts";
import type { AppendOutcome, ReleaseReason, RoomInbox, OutgoingRecord, Receiver, RoomLog } from "../ports.ts";
import { tracedPorts } from "./traced-ports.ts";

const GATEWAY = "g1" as GatewayId;
const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const USER = "ada" as UserId;
const EPOCH = 5 as Epoch;
const STAMP = { id: "rs-1.1", time: 0 as UnixMillis };

function edit(counter: number): SubmittedEdit {
  return { author: { user: USER, client: CLIENT }, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(9) };
}

function recordOf(...counters: number[]): OutgoingRecord {
  const edits = counters.map((counter) => ({ client: CLIENT, counter, parentSeq: 0 as Seq, payload: new Uint8Array(9) }));
  const bytes = encodeEditsRecord({ ...STAMP, users: new Map([[CLIENT, USER]]), edits: { epoch: EPOCH, firstSeq: 8 as Seq, edits } });
  return { id: STAMP.id, bytes, expectedId: undefined, expectedStreamSeq: 0 };
}

/** Traced ports around ports that record their calls. */
async function roomServer() {
  const traces = new TestTraces();
  const reached: unknown[] = [];
  let receiver: Receiver | undefined;
  let settle: (outcome: AppendOutcome) => void = () => {};
  const inbox: RoomInbox = {
    subscribe: (_, given) => {
      receiver = given;
      return Promise.resolve({ isOpen: () => true, close: () => Promise.resolve() });
    },
  };
  const log: Pick<RoomLog, "append"> = {
    append: (_room, record, settled) => {
      settle = settled;
      reached.push(record);
      return () => void reached.push("abandoned");
    },
  };
  const gateways = { answer: (...sent: unknown[]) => void reached.push(sent), broadcast: () => {} };
  const ports = tracedPorts({ inbox, log: log as RoomLog, gateways }, traces.edits);
  const reach = (message: unknown): void => void reached.push(message);
  await ports.inbox.subscribe(ROOM, { openEpoch: undefined, receiveMessage: reach, receivePresence: reach });
  const give = (message: ToOwner): void => receiver!.receiveMessage(message, 1);
  const edits = (...counters: number[]): ToOwner => ({ kind: "edits", gateway: GATEWAY, edits: counters.map(edit) });
  const append = (record: OutgoingRecord): ((why: ReleaseReason) => void) =>
    ports.log.append(ROOM, record, (outcome) => void reached.push(outcome));
  const traced = (counter: number) => traces.edits.of(ROOM, CLIENT, counter)!;
  return { traces, reached, ports, give, edits, append, traced, settle: (outcome: AppendOutcome) => settle(outcome) };
}

test("[TRC20] an edit is processed until the log contains its record, and the append is a part of that", async () => {
  const { traces, reached, give, edits, append, traced, settle } = await roomServer();
  give(edits(1, 2));
  traces.now += 10;
  give(edits(2));
  append(recordOf(1, 2));
  traces.now += 10;
  settle({ kind: "appended", streamSeq: 3 });
  expect(traces.summary).toEqual([
    { name: "send log", took: [1_010, 1_020] },
    { name: "process owner", took: [1_000, 1_020] },
    { name: "send log", took: [1_010, 1_020] },
    { name: "process owner", took: [1_000, 1_020], events: ["received again"] },
  ]);
  const [append2, process2] = traces.spans.slice(2);
  expect([append2!.spanId, append2!.parentSpanId, process2!.parentSpanId]).toEqual([
    appendSpanId(traced(2), EPOCH),
    process2!.spanId,
    editSpanId(traced(2), GATEWAY),
  ]);
  expect(append2!.attributes).toMatchObject({ "coroom.edit.seq": 9, "coroom.epoch": 5, "messaging.batch.message_count": 2 });
  expect(reached).toEqual([edits(1, 2), edits(2), recordOf(1, 2), { kind: "appended", streamSeq: 3 }]);
});

test("[TRC21] the span of an edit that was not appended records the outcome", async () => {
  const { traces, reached, ports, give, edits, append, settle } = await roomServer();
  const answer = (message: OwnerReply): void => ports.gateways.answer(GATEWAY, ROOM, message);
  give(edits(1, 2, 3, 4));
  give({
    kind: "resubmit",
    gateway: GATEWAY,
    edit: { ...edit(5), client: CLIENT, user: USER, epoch: EPOCH, mac: new Uint8Array() },
  });
  const acked: OwnerReply = { kind: "acked", epoch: EPOCH, client: CLIENT, counter: 1, seq: 4 as Seq, exact: true };
  answer(acked);
  answer({ kind: "refused", epoch: EPOCH, client: CLIENT, counter: 2, reason: "gap", expected: 1, retryAfterMs: 0 });
  append(recordOf(3));
  settle({ kind: "fenced" });
  append(recordOf(4))("fenced");
  append(recordOf(5));
  settle({ kind: "appended", streamSeq: 9 });
  expect(traces.spans.map(({ name, status, attributes }) => [name, status?.message ?? attributes["coroom.edit.seq"]])).toEqual([
    ["process owner", 4],
    ["process owner", "gap"],
    ["send log", "fenced"],
    ["process owner", "fenced"],
    ["send log", "abandoned: fenced"],
    ["process owner", "abandoned: fenced"],
    ["send log", 8],
    ["process owner", 8],
  ]);
  expect(traces.spans.at(-1)!.attributes).toMatchObject({ "coroom.edit.resubmitted": true });
  expect(traces.spans[0]!.attributes).toMatchObject({ "coroom.edit.repeated": true });
  expect(reached).toEqual(expect.arrayContaining([[GATEWAY, ROOM, acked], "abandoned"]));
});

test("[TRC22] messages other than edits pass through without a trace", async () => {
  const { traces, reached, ports, give, append, settle } = await roomServer();
  give({ kind: "check-ownership" });
  give({ kind: "catch-up-request", gateway: GATEWAY, request: 1, after: { epoch: EPOCH, seq: 1 as Seq }, through: 0 as Seq });
  const answer = { kind: "edits" as const, parts: [] };
  ports.gateways.answer(GATEWAY, ROOM, { kind: "catch-up", request: 1, epoch: EPOCH, head: 1 as Seq, answer });
  append({ ...recordOf(1), bytes: encodeEpochRecord({ ...STAMP, epoch: EPOCH, head: 0 as Seq }) });
  settle({ kind: "appended", streamSeq: 1 });
  expect([traces.spans, reached.length]).toEqual([[], 5]);
});
