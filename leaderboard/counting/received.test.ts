import { expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { encodeDeletedRecord, encodeEpochRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { recordOf } from "../testing/records.ts";
import { decodeReceived } from "./received.ts";

const TIME = 1_700_000_000_000 as UnixMillis;
const USER = "ada" as UserId;

const stored = (bytes: Uint8Array): StoredRecord => ({ room: "tenant/room" as RoomKey, streamSeq: 7, time: TIME, bytes });

test("[RCV1] a record of edits has as many entries as edits", () => {
  const bytes = recordOf(
    4,
    [1, 2, 3].map((size) => ({ user: USER, bytes: size, time: TIME })),
  );
  const decoded = decodeReceived("edits", stored(bytes));
  expect(decoded).toMatchObject({
    kind: "received",
    received: { source: "edits", entries: 3, streamSeq: 7, time: TIME, record: { kind: "edits", edits: { firstSeq: 4 } } },
  });
});

test("[RCV2] an activity is one entry, however many users it names", () => {
  const activity = { kind: "present", users: [USER, "ben" as UserId] } as const;
  expect(decodeReceived("activities", stored(encodeJson(activity)))).toEqual({
    kind: "received",
    received: { source: "activities", activity, entries: 1, streamSeq: 7, time: TIME },
  });
});

test("[RCV3] a record without edits is readable and has nothing to count", () => {
  const stamp = { id: "server.1", time: TIME };
  for (const bytes of [encodeEpochRecord({ ...stamp, epoch: 2 as Epoch, head: 9 as Seq }), encodeDeletedRecord(stamp)])
    expect(decodeReceived("edits", stored(bytes))).toEqual({ kind: "nothing" });
});

test("[RCV4] bytes that do not decode for their stream are unreadable", () => {
  const edits = recordOf(1, [{ user: USER, bytes: 1, time: TIME }]);
  const activity = encodeJson({ kind: "present", users: [USER] });
  for (const bytes of [new Uint8Array(), edits.subarray(0, -1), activity])
    expect(decodeReceived("edits", stored(bytes))).toEqual({ kind: "unreadable" });
  for (const bytes of [new Uint8Array(), edits, encodeJson({ kind: "newer" })])
    expect(decodeReceived("activities", stored(bytes))).toEqual({ kind: "unreadable" });
});
