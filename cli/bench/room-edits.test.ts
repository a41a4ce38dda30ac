import { expect, test } from "vitest";

import { Latencies } from "./latencies.ts";
import { RoomEdits } from "./room-edits.ts";

/** Places in the room. A writer's Yjs client id is one more. */
const [ANN, BOB, EVE] = [0, 1, 2];
const by = (author: number, counter: number, count = 1) => ({ writer: author + 1, counter, count });

function roomOf(...here: number[]) {
  const times = { acked: new Latencies(), received: new Latencies() };
  const edits = new RoomEdits(3, times);
  for (const person of here) edits.addPerson(person);
  return { edits, times };
}

test("[BNC1] an edit is complete when its author and everybody else in the room received it", () => {
  const { edits, times } = roomOf(ANN, BOB);
  expect(edits.write(ANN, 100)).toBe(1);
  edits.receive(ANN, by(ANN, 1), 103);
  expect([edits.isComplete, edits.acknowledged, edits.received, edits.expected]).toEqual([false, 1, 0, 1]);
  edits.receive(BOB, by(ANN, 1), 110);
  expect([edits.isComplete, edits.written, edits.received, edits.missing()]).toEqual([true, 1, 1, []]);
  expect([times.acked.total, times.received.total]).toEqual([1, 1]);
  expect(times.acked.percentile(100)).toBeCloseTo(3, 1);
  expect(times.received.percentile(100)).toBeCloseTo(10, 0);
});

test("[BNC2] an edit that is left out, and edits at the end that never came, are listed", () => {
  const { edits } = roomOf(ANN, BOB);
  for (let edit = 1; edit <= 6; edit++) edits.write(ANN, edit);
  edits.receive(ANN, by(ANN, 1, 6), 10);
  edits.receive(BOB, by(ANN, 1), 10);
  edits.receive(BOB, by(ANN, 3, 2), 11);
  expect(edits.missing()).toEqual([
    { person: BOB, author: ANN, first: 2, last: 2 },
    { person: BOB, author: ANN, first: 5, last: 6 },
  ]);
  expect([edits.received, edits.expected, edits.isComplete]).toEqual([3, 6, false]);
  edits.receive(BOB, by(ANN, 2), 12);
  expect([edits.missing(), edits.repeated]).toEqual([[{ person: BOB, author: ANN, first: 5, last: 6 }], 0]);
});

test("[BNC3] an edit without an acknowledgement is missing at its author", () => {
  const { edits } = roomOf(ANN, BOB);
  edits.write(ANN, 1);
  edits.receive(BOB, by(ANN, 1), 2);
  expect([edits.written, edits.acknowledged, edits.missing()]).toEqual([1, 0, [{ person: ANN, author: ANN, first: 1, last: 1 }]]);
});

test("[BNC4] an edit that arrives twice counts as repeated and is timed once", () => {
  const { edits, times } = roomOf(ANN, BOB);
  edits.write(ANN, 1);
  for (const now of [2, 3]) edits.receive(BOB, by(ANN, 1), now);
  expect([edits.repeated, edits.received, times.received.total]).toEqual([1, 1, 1]);
});

test("[BNC5] edits in a snapshot count as received, and are not timed", () => {
  const { edits, times } = roomOf(ANN, BOB);
  for (let edit = 1; edit <= 3; edit++) edits.write(ANN, edit);
  edits.receive(BOB, by(ANN, 1), 2);
  edits.receiveSnapshot(BOB, new Map([[ANN + 1, 2]]));
  expect([edits.received, times.received.total]).toEqual([2, 1]);
  edits.receive(BOB, by(ANN, 3), 9);
  expect([edits.received, edits.repeated, times.received.total]).toEqual([3, 0, 2]);
});

test("[BNC6] after a rollback all edits are expected again, and an edit that came before is not timed again", () => {
  const { edits, times } = roomOf(ANN, BOB);
  for (let edit = 1; edit <= 2; edit++) edits.write(ANN, edit);
  edits.receive(BOB, by(ANN, 1, 2), 5);
  edits.receiveRolledBack(BOB);
  expect(edits.received).toBe(0);
  edits.receive(BOB, by(ANN, 1), 9);
  expect([edits.received, edits.repeated, times.received.total]).toEqual([1, 0, 2]);
  expect(edits.missing()).toContainEqual({ person: BOB, author: ANN, first: 2, last: 2 });
});

test("[BNC7] a person who never was in the room is not expected to receive anything", () => {
  const { edits } = roomOf(ANN, BOB);
  edits.write(ANN, 1);
  edits.receive(ANN, by(ANN, 1), 2);
  edits.receive(BOB, by(ANN, 1), 2);
  edits.receive(EVE, by(ANN, 1), 2);
  expect([edits.expected, edits.received, edits.isComplete]).toEqual([1, 1, true]);
});
