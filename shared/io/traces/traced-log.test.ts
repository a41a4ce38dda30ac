import { expect, test } from "vitest";

import { encodeEditsRecord, encodeEpochRecord, type StoredRecord } from "../../bus/record.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../ids.ts";
import { TestTraces } from "../../testing/traces.ts";
import type { FollowPartition } from "../log-reader.ts";
import { appendSpanId } from "./edit-traces.ts";
import { tracedLog } from "./traced-log.ts";

const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const EPOCH = 5 as Epoch;
const STAMP = { id: "rs-1.1", time: 0 as UnixMillis };
const NOW_MS = 1_000_000;

function stored(bytes: Uint8Array, time = NOW_MS): StoredRecord {
  return { room: ROOM, streamSeq: 7, time: time as UnixMillis, bytes };
}

function edits(counter: number): Uint8Array {
  const edit = { client: CLIENT, counter, parentSeq: 0 as Seq, payload: new Uint8Array(9) };
  const users = new Map([[CLIENT, "ada" as UserId]]);
  return encodeEditsRecord({ ...STAMP, users, edits: { epoch: EPOCH, firstSeq: 3 as Seq, edits: [edit] } });
}

async function read(records: readonly StoredRecord[]): Promise<TestTraces> {
  const traces = new TestTraces();
  traces.now = NOW_MS * 1_000;
  const log: { readonly follow: FollowPartition } = {
    follow: async function* () {
      yield* records;
    },
  };
  const given: StoredRecord[] = [];
  for await (const record of tracedLog(log, traces.edits, "readers").follow(0, { after: 0 }, new AbortController().signal)) {
    given.push(record);
    traces.now += 5;
  }
  expect(given).toEqual(records);
  return traces;
}

test("[TRC23] an edit that is read from the log is a hop whose parent is its append, until the reader has processed the record", async () => {
  const { spans, summary, edits: traces } = await read([stored(edits(1))]);
  expect(summary).toEqual([{ name: "process log", took: [NOW_MS * 1_000, NOW_MS * 1_000 + 5] }]);
  expect(spans[0]).toMatchObject({
    parentSpanId: appendSpanId(traces.of(ROOM, CLIENT, 1)!, EPOCH),
    attributes: { "messaging.consumer.group.name": "readers", "coroom.edit.seq": 3, "coroom.stream_seq": 7 },
  });
});

test("[TRC24] a record that has no edits, does not decode or is read again after a restart is passed on without a trace", async () => {
  const whole = edits(1);
  const broken = Array.from({ length: whole.byteLength }, (_, length) => stored(whole.slice(0, length)));
  const epoch = stored(encodeEpochRecord({ ...STAMP, epoch: EPOCH, head: 0 as Seq }));
  expect((await read([...broken, epoch, stored(whole, NOW_MS - 60_000)])).spans).toEqual([]);
});

test("[TRC25] without traces, the reader of the log is returned unchanged", () => {
  const log = { follow: async function* (): AsyncIterable<StoredRecord> {} };
  expect(tracedLog(log, undefined, "readers")).toBe(log);
});
