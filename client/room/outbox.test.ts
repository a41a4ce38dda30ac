import { expect, test } from "vitest";

import type { ClientId, Millis, Seq } from "../../shared/ids.ts";
import type { NackReason } from "../../shared/wire/frames.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";

const OPTIONS: OutboxOptions = {
  format: undefined,
  mergeUnsent: true,
  unsentBytesMax: 1_000_000,
  inFlightEditsMax: 5,
  inFlightBytesMax: 100,
  silenceMsMax: 10_000,
};
const BYTES_MAX = 50;
/** The format of payloads that can be merged and cut. */
const FORMAT = { merge: () => bytes(), split: () => undefined };
const CUTTING: Partial<OutboxOptions> = { format: FORMAT, mergeUnsent: false };
const CLIENT = "client__________" as ClientId;
const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

function outboxWith(count: number, options: Partial<OutboxOptions> = {}): Outbox {
  const outbox = new Outbox({ ...OPTIONS, ...options });
  outbox.joined(CLIENT, at(0));
  for (let value = 1; value <= count; value++) outbox.add(bytes(value));
  return outbox;
}

/** The edits that are sent now, as counter:payload/ackedThrough. */
function send(outbox: Outbox, now = at(0), parentSeq = 0, windowMax = Infinity, resentBytesMax = BYTES_MAX): string[] {
  const sent: string[] = [];
  while (outbox.hasNext(windowMax, now)) {
    const next = outbox.takeNext(parentSeq as Seq, { bytesMax: BYTES_MAX, resentBytesMax }, now);
    sent.push(next.kind === "edit" ? `${next.edit.counter}:${next.edit.payload}/${next.ackedThrough}` : next.kind);
  }
  return sent;
}

const nack = (outbox: Outbox, counter: number, reason: NackReason, { expected = counter, retryAfterMs = 0, now = at(0) } = {}) =>
  outbox.receiveNack(counter, reason, expected, retryAfterMs, now);

test("[OBX1] edits are numbered from 1 without a gap, and kept until they are acknowledged", () => {
  const outbox = outboxWith(3);
  expect(send(outbox)).toEqual(["1:1/0", "2:2/0", "3:3/0"]);
  expect(outbox.unsavedEdits).toBe(3);
  expect(outbox.receiveAck(2, at(0)).map(({ counter }) => counter)).toEqual([1, 2]);
  expect(outbox.unsavedEdits).toBe(1);
  outbox.add(bytes(4));
  expect(send(outbox)).toEqual(["4:4/2"]);
  outbox.receiveAck(4, at(0));
  expect(outbox.isEmpty).toBe(true);
});

test("[OBX2] after a reconnect all unacknowledged edits go out again with the same counters, bytes and parents", () => {
  const outbox = outboxWith(3);
  send(outbox, at(0), 7);
  outbox.receiveAck(1, at(0));
  outbox.add(bytes(4));
  outbox.joined(CLIENT, at(100));
  expect(outbox.hasNext(Infinity, at(100))).toBe(true);
  expect(outbox.takeNext(99 as Seq, { bytesMax: BYTES_MAX, resentBytesMax: BYTES_MAX }, at(100))).toEqual({
    kind: "edit",
    edit: { client: CLIENT, counter: 2, parentSeq: 7, payload: bytes(2), made: 1 },
    ackedThrough: 1,
  });
  expect(send(outbox, at(100))).toEqual(["3:3/1", "4:4/1"]);
});

test("[OBX3] an acknowledgement of an edit that was never sent is ignored", () => {
  const outbox = outboxWith(2);
  send(outbox, at(0), 0, 1);
  expect(outbox.receiveAck(2, at(0))).toEqual([]);
  expect(outbox.receiveAck(50, at(0))).toEqual([]);
  expect(outbox.unsavedEdits).toBe(2);
});

test("[OBX4] sent edits, resent ones included, never exceed the window in number or bytes", () => {
  expect(send(outboxWith(9))).toHaveLength(5);
  const outbox = outboxWith(9);
  expect(send(outbox, at(0), 0, 3)).toHaveLength(3);
  outbox.joined(CLIENT, at(0));
  expect(send(outbox, at(0), 0, 1)).toEqual(["1:1/0"]);
  outbox.receiveAck(1, at(0));
  expect(send(outbox, at(0), 0, 1)).toEqual(["2:2/1"]);
  const large = outboxWith(0);
  for (let count = 0; count < 4; count++) large.add(new Uint8Array(50));
  expect(send(large)).toHaveLength(2);
});

test("[OBX5] after a gap the edits go out again from the expected one, once", () => {
  const outbox = outboxWith(4);
  send(outbox);
  nack(outbox, 3, "gap", { expected: 2 });
  expect(send(outbox)).toEqual(["2:2/0", "3:3/0", "4:4/0"]);
  nack(outbox, 4, "gap", { expected: 2, now: at(300) });
  expect(send(outbox, at(300)), "an echo").toEqual([]);
  nack(outbox, 4, "gap", { expected: 2, now: at(1_500) });
  expect(send(outbox, at(1_500)), "lost again").toEqual(["2:2/0", "3:3/0", "4:4/0"]);
  outbox.receiveAck(2, at(1_600));
  nack(outbox, 4, "gap", { expected: 3, now: at(1_700) });
  expect(send(outbox, at(1_700)), "another gap").toEqual(["3:3/2", "4:4/2"]);
});

test("[OBX5] a server that expects an acknowledged or unsent edit receives the available edits", () => {
  const outbox = outboxWith(3);
  send(outbox);
  outbox.receiveAck(1, at(0));
  nack(outbox, 3, "gap", { expected: 1 });
  expect(send(outbox)).toEqual(["2:2/1", "3:3/1"]);
  nack(outbox, 3, "gap", { expected: 9 });
  expect(send(outbox)).toEqual([]);
});

test.each(["write-backpressure", "log-stalled", "tenant-rate"] as const)(
  "[OBX6] %s: the outbox waits the given time, then continues in order from the rejected edit",
  (reason) => {
    const outbox = outboxWith(3);
    send(outbox);
    nack(outbox, 2, reason, { retryAfterMs: 500 });
    outbox.add(bytes(4));
    expect(send(outbox, at(499))).toEqual([]);
    expect(outbox.dueAt(true, at(499))).toBe(at(500));
    expect(send(outbox, at(500))).toEqual(["2:2/0", "3:3/0", "4:4/0"]);
  },
);

test("[OBX6] a rejection of a settled edit is ignored", () => {
  const outbox = outboxWith(2);
  send(outbox);
  outbox.receiveAck(2, at(0));
  nack(outbox, 2, "write-backpressure", { retryAfterMs: 60_000 });
  outbox.add(bytes(3));
  expect(send(outbox)).toEqual(["3:3/2"]);
});

test("[OBX7] an edit over the limit is never sent and takes no counter", () => {
  const outbox = outboxWith(1);
  outbox.add(new Uint8Array(BYTES_MAX + 1).fill(9));
  outbox.add(bytes(3));
  expect(send(outbox).map((sent) => sent.slice(0, 9))).toEqual(["1:1/0", "too-large", "2:3/0"]);
  expect(outbox.unsavedEdits).toBe(2);
});

test("[OBX8] an edit that the server finds too large waits to be cut and counts as unsaved; it and later edits get new counters under a new key", () => {
  const outbox = outboxWith(3, CUTTING);
  send(outbox);
  expect(nack(outbox, 2, "too-large")).toBe(1);
  expect(outbox.unsavedEdits).toBe(3);
  expect([outbox.needsNewKey, ...send(outbox)], "not before the first is acknowledged").toEqual([false]);
  outbox.receiveAck(1, at(0));
  expect(outbox.needsNewKey).toBe(true);
  outbox.newKey();
  outbox.joined(CLIENT, at(0));
  expect(send(outbox)).toEqual(["1:2/0", "2:3/0"]);
});

test("[OBX9] after the key becomes stale, sent edits are resent under the old key; once these are acknowledged, unsent edits get a new key", () => {
  const outbox = outboxWith(2);
  send(outbox);
  outbox.add(bytes(3));
  outbox.keyIsStale();
  outbox.joined(CLIENT, at(400_000));
  expect(send(outbox, at(400_000))).toEqual(["1:1/0", "2:2/0"]);
  outbox.receiveAck(2, at(400_000));
  expect(outbox.needsNewKey).toBe(true);
  outbox.newKey();
  outbox.joined(CLIENT, at(400_000));
  expect(send(outbox, at(400_000))).toEqual(["1:3/0"]);
});

test("[OBX10] unanswered edits go out again, each time after twice the wait", () => {
  const outbox = outboxWith(2);
  send(outbox);
  expect(outbox.dueAt(true, at(0))).toBe(at(10_000));
  expect(outbox.dueAt(false, at(0)), "a slow log gives no answers").toBeUndefined();
  outbox.receiveTick(at(9_999));
  expect(send(outbox, at(9_999))).toEqual([]);
  outbox.receiveTick(at(10_000));
  expect(send(outbox, at(10_000))).toEqual(["1:1/0", "2:2/0"]);
  expect(outbox.dueAt(true, at(10_000))).toBe(at(30_000));
  outbox.receiveAck(1, at(11_000));
  expect(outbox.dueAt(true, at(11_000))).toBe(at(21_000));
});

test.each(["read-only", "forged"] as const)("[OBX11] %s removes nothing from the outbox", (reason) => {
  const outbox = outboxWith(2);
  send(outbox);
  expect(nack(outbox, 1, reason)).toBeUndefined();
  expect(outbox.unsavedEdits).toBe(2);
  outbox.joined(CLIENT, at(0));
  expect(send(outbox)).toHaveLength(2);
});

test("[OBX10] a large edit is not sent again while a slow uplink may still carry it", () => {
  const outbox = outboxWith(0);
  outbox.add(new Uint8Array(BYTES_MAX));
  send(outbox);
  const uploadMs = Math.floor(BYTES_MAX / 6);
  expect(outbox.dueAt(true, at(0))).toBe(at(10_000 + uploadMs));
  outbox.receiveTick(at(10_000 + uploadMs - 1));
  expect(send(outbox, at(10_000))).toEqual([]);
  outbox.receiveTick(at(10_000 + uploadMs));
  expect(send(outbox, at(10_000))).toHaveLength(1);
});

test("[OBX10] several edits wait for a slow uplink as long as the largest of them, because each is acknowledged separately", () => {
  const outbox = outboxWith(0);
  for (const size of [24, 48, 12]) outbox.add(new Uint8Array(size));
  expect(send(outbox)).toHaveLength(3);
  expect(outbox.dueAt(true, at(0))).toBe(at(10_000 + 8));
  outbox.receiveAck(1, at(4));
  expect(outbox.dueAt(true, at(4))).toBe(at(4 + 10_000 + 8));
  outbox.receiveAck(2, at(12));
  expect(outbox.dueAt(true, at(12))).toBe(at(12 + 10_000 + 2));
});

test("[OBX10] unanswered edits go out again even if only some of the edits may be sent", () => {
  const outbox = outboxWith(4);
  send(outbox);
  outbox.joined(CLIENT, at(1_000));
  expect(send(outbox, at(1_000), 0, 2)).toEqual(["1:1/0", "2:2/0"]);
  expect(outbox.dueAt(true, at(1_000))).toBe(at(11_000));
  outbox.receiveTick(at(11_000));
  expect(send(outbox, at(11_000), 0, 2)).toEqual(["1:1/0", "2:2/0"]);
});

test("[OBX16] a sent edit that is too large for the current connection waits, with all later edits, for another key", () => {
  const outbox = outboxWith(0, CUTTING);
  for (const payload of [bytes(1), bytes(2, 2, 2, 2), bytes(3)]) outbox.add(payload);
  expect(send(outbox)).toEqual(["1:1/0", "2:2,2,2,2/0", "3:3/0"]);
  outbox.joined(CLIENT, at(1_000));
  expect(send(outbox, at(1_000), 0, Infinity, 3)).toEqual(["1:1/0", "taken-back"]);
  expect([outbox.needsNewKey, outbox.unsavedEdits]).toEqual([false, 3]);
  outbox.receiveAck(1, at(2_000));
  expect([outbox.needsNewKey, outbox.newKey(), outbox.unsavedEdits]).toEqual([true, undefined, 2]);
});

test.each(["refused", "too large for the next connection"] as const)(
  "[OBX17] an edit that cannot be cut and is %s is dropped once earlier edits are settled; later edits keep their counters",
  (why) => {
    const outbox = outboxWith(0);
    for (const payload of [bytes(1), bytes(2, 2, 2, 2), bytes(3), bytes(4)]) outbox.add(payload);
    send(outbox);
    if (why === "refused") expect(nack(outbox, 2, "too-large")).toBe(4);
    outbox.joined(CLIENT, at(1_000));
    const goesOut = (now: number) => send(outbox, at(now), 0, Infinity, why === "refused" ? BYTES_MAX : 3);
    expect(goesOut(1_000)).toEqual(why === "refused" ? ["1:1/0"] : ["1:1/0", "taken-back"]);
    expect([outbox.unsavedEdits, outbox.needsNewKey]).toEqual([4, false]);
    outbox.receiveAck(1, at(2_000));
    nack(outbox, 3, "gap", { expected: 2, now: at(2_000) });
    expect(goesOut(2_000), "the server learns that it need not wait for it").toEqual(["too-large", "3:3/2", "4:4/2"]);
    nack(outbox, 4, "gap", { expected: 2, now: at(2_000) });
    expect(outbox.receiveAck(4, at(3_000)).map(({ counter }) => counter)).toEqual([3, 4]);
    expect([outbox.isEmpty, outbox.unsavedEdits]).toEqual([true, 0]);
  },
);

test("[OBX17] an edit that cannot be cut is not dropped if it turns out to be committed before its turn", () => {
  const outbox = outboxWith(3);
  send(outbox);
  nack(outbox, 2, "too-large");
  expect(outbox.receiveAck(3, at(0)).map(({ counter }) => counter)).toEqual([1, 2, 3]);
  outbox.add(bytes(4));
  expect(send(outbox)).toEqual(["4:4/3"]);
});

test("[OBX18] an edit that was to be dropped, and whose counter a copy of the page used, goes out under the next key", () => {
  const outbox = outboxWith(2);
  send(outbox);
  outbox.receiveAck(1, at(0));
  nack(outbox, 2, "too-large");
  expect(outbox.receiveLogged(2, bytes(99))).toBe(true);
  expect([send(outbox), outbox.needsNewKey, outbox.unsavedEdits]).toEqual([[], true, 1]);
  outbox.newKey();
  outbox.joined(CLIENT, at(0));
  expect(send(outbox)).toEqual(["1:2/0"]);
});
