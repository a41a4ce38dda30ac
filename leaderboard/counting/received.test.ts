import { expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { encodeDeletedRecord, encodeEpochRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { recordOf } from "../testing/records.ts";
import { decodeReceived, instantAfter, type Source, timeOf } from "./received.ts";

const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;

/** `count` instants of one source in one millisecond. */
function instants(count: number, source: Source, time = NOON): number[] {
  const found: number[] = [];
  for (let last = 0; found.length < count; found.push(last)) last = instantAfter(last, time, source);
  return found;
}

test("[INST1] instants rise within a millisecond, and with the clock", () => {
  const found = [...instants(5_000, "edits"), instantAfter(instants(5_000, "edits").at(-1)!, (NOON + 60_000) as UnixMillis, "edits")];
  expect(found).toEqual([...new Set(found)].sort((a, b) => a - b));
  expect(found.map(timeOf).slice(0, 1_000)).toEqual(Array.from({ length: 1_000 }, () => NOON));
  expect(timeOf(found.at(-1)!)).toBe(NOON + 60_000);
});

test("[INST2] instants do not go back with the clock", () => {
  const last = instantAfter(0, NOON, "activities");
  expect(instantAfter(last, (NOON - 1_000) as UnixMillis, "activities")).toBe(last + 2);
});

test("[INST3] no edit has the instant of another activity, at any time", () => {
  const edits = new Set([0, NOON].flatMap((time) => instants(100, "edits", time as UnixMillis)));
  expect([0, NOON].flatMap((time) => instants(100, "activities", time as UnixMillis)).some((instant) => edits.has(instant))).toBe(false);
});

test("[INST4] instants are whole numbers that a double holds, for a hundred years", () => {
  expect(Number.isSafeInteger(instantAfter(0, Date.UTC(2100, 0, 1) as UnixMillis, "activities"))).toBe(true);
});

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

test("[RCV2] an activity with several users is one entry", () => {
  const activity = { kind: "present", users: [USER, "ben" as UserId] } as const;
  expect(decodeReceived("activities", stored(encodeJson(activity)))).toEqual({
    kind: "received",
    received: { source: "activities", activity, entries: 1, streamSeq: 7, time: TIME },
  });
});

test("[RCV3] a record without edits is readable and adds no points", () => {
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
