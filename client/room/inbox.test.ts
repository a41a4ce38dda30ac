import { expect, test } from "vitest";

import type { ClientId, Epoch, Millis, Seq } from "../../shared/ids.ts";
import { type EditBatch, EditInbox, type InboxOptions } from "./incoming-edits.ts";

const OPTIONS: InboxOptions = { heldBytesMax: 10_000, replayMsMax: 2_000, replaysMax: 2 };
const at = (ms: number): Millis => (1_000_000 + ms) as Millis;

function batch(first: number, last: number, epoch = 1, payloadBytes = 1): EditBatch {
  const edits = Array.from({ length: last - first + 1 }, (_, index) => ({
    seq: (first + index) as Seq,
    client: "0123456789abcdef" as ClientId,
    counter: first + index,
    payload: new Uint8Array(payloadBytes),
    own: false,
  }));
  return { epoch: epoch as Epoch, edits };
}
const receive = (inbox: EditInbox, received: EditBatch, patienceMs = 0, now = at(0)): number[] =>
  inbox.receiveBatch(received, patienceMs, now).flatMap(({ edits }) => edits.map(({ seq }) => seq as number));

test("[INB1] edits are delivered in seq order, each of them once", () => {
  const inbox = new EditInbox(OPTIONS);
  expect(receive(inbox, batch(1, 3))).toEqual([1, 2, 3]);
  expect(receive(inbox, batch(1, 3)), "a repeat").toEqual([]);
  expect(receive(inbox, batch(2, 5)), "an overlap").toEqual([4, 5]);
  expect(inbox.position).toEqual({ epoch: 1, seq: 5 });
  expect(receive(inbox, { epoch: 1 as Epoch, edits: [] })).toEqual([]);
});

test("[INB2] nothing is delivered beyond a gap until the gap is filled", () => {
  const inbox = new EditInbox(OPTIONS);
  expect([receive(inbox, batch(4, 5)), receive(inbox, batch(8, 8)), receive(inbox, batch(2, 3))]).toEqual([[], [], []]);
  expect(receive(inbox, batch(1, 1))).toEqual([1, 2, 3, 4, 5]);
  expect(receive(inbox, batch(6, 8))).toEqual([6, 7, 8]);
});

test("[INB3] the inbox requests a gap at once, again if nothing arrives, and finally by rejoining", () => {
  const inbox = new EditInbox(OPTIONS);
  receive(inbox, batch(1, 2));
  receive(inbox, batch(6, 6));
  receive(inbox, batch(9, 9));
  expect(inbox.planRepair(at(0))).toEqual({ kind: "replay", after: 2, through: 5 });
  expect(inbox.planRepair(at(1_999))).toBeUndefined();
  expect(inbox.dueAt).toBe(at(2_000));
  expect(inbox.planRepair(at(2_000))).toEqual({ kind: "replay", after: 2, through: 5 });
  expect(inbox.planRepair(at(6_000))).toEqual({ kind: "rejoin" });
  expect(inbox.dueAt, "the join brings it").toBeUndefined();
  expect(receive(inbox, batch(3, 9))).toEqual([3, 4, 5, 6, 7, 8, 9]);
});

test("[INB3] the inbox requests the next gap when the previous one is filled", () => {
  const inbox = new EditInbox(OPTIONS);
  receive(inbox, batch(3, 3));
  receive(inbox, batch(6, 6));
  expect(inbox.planRepair(at(0))).toEqual({ kind: "replay", after: 0, through: 2 });
  expect(receive(inbox, batch(1, 2))).toEqual([1, 2, 3]);
  expect(inbox.planRepair(at(0))).toEqual({ kind: "replay", after: 3, through: 5 });
  expect(receive(inbox, batch(4, 5))).toEqual([4, 5, 6]);
  expect(inbox.dueAt).toBeUndefined();
});

test("[INB4] during catch-up a gap may fill by itself, as long as there is progress", () => {
  const inbox = new EditInbox(OPTIONS);
  receive(inbox, batch(9, 9), 500, at(0));
  expect(inbox.planRepair(at(499))).toBeUndefined();
  receive(inbox, batch(1, 4), 500, at(499));
  expect(inbox.planRepair(at(998))).toBeUndefined();
  expect(inbox.planRepair(at(999))).toEqual({ kind: "replay", after: 4, through: 8 });
});

test("[INB5] held edits are bounded; edits that did not fit are requested later", () => {
  const inbox = new EditInbox({ ...OPTIONS, heldBytesMax: 1_200 });
  receive(inbox, batch(3, 3, 1, 900));
  receive(inbox, batch(5, 5, 1, 200));
  expect(receive(inbox, batch(1, 2))).toEqual([1, 2, 3]);
  expect(receive(inbox, batch(7, 7))).toEqual([]);
  expect(inbox.planRepair(at(0))).toEqual({ kind: "replay", after: 3, through: 6 });
});

test("[INB6] the position carries the epoch of the last edit, and starts again at a snapshot", () => {
  const inbox = new EditInbox(OPTIONS);
  receive(inbox, batch(1, 2, 1));
  receive(inbox, batch(3, 3, 4));
  expect(inbox.position).toEqual({ epoch: 4, seq: 3 });
  receive(inbox, batch(9, 9, 4));
  inbox.startAt({ epoch: 2 as Epoch, seq: 1 as Seq });
  expect(inbox.dueAt).toBeUndefined();
  expect(receive(inbox, batch(2, 2, 5))).toEqual([2]);
  expect(inbox.position).toEqual({ epoch: 5, seq: 2 });
});

test("[INB9] edits that are known to be committed and do not arrive are requested, both before and after held edits", () => {
  const inbox = new EditInbox(OPTIONS);
  receive(inbox, batch(1, 2));
  inbox.receiveHead(2 as Seq, 0, at(0));
  expect(inbox.dueAt, "received already").toBeUndefined();
  inbox.receiveHead(7 as Seq, 0, at(0));
  expect(inbox.planRepair(at(0))).toEqual({ kind: "replay", after: 2, through: 7 });
  receive(inbox, batch(5, 5));
  expect(inbox.planRepair(at(2_000))).toEqual({ kind: "replay", after: 2, through: 4 });
  expect(receive(inbox, batch(3, 4))).toEqual([3, 4, 5]);
  expect(inbox.planRepair(at(2_000))).toEqual({ kind: "replay", after: 5, through: 7 });
  expect(receive(inbox, batch(6, 7))).toEqual([6, 7]);
  expect(inbox.dueAt).toBeUndefined();
});

test("[INB8] edits without a payload count toward the limit, so a flood of them after a gap is limited", () => {
  const inbox = new EditInbox({ ...OPTIONS, heldBytesMax: 100_000 });
  for (let seq = 2; seq <= 20_000; seq++) receive(inbox, batch(seq, seq, 1, 0));
  expect(inbox.planRepair(at(0))).toEqual({ kind: "replay", after: 0, through: 1 });
  expect(receive(inbox, batch(1, 1)).length).toBeLessThan(1_000);
});
