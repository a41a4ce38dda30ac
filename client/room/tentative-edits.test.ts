import { expect, test } from "vitest";

import type { ClientId, Epoch, Millis, Seq, UserId } from "../../shared/ids.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";
import { TentativeEdits, type TentativeOptions } from "./tentative-edits.ts";

const OPTIONS: TentativeOptions = {
  editsMax: 5,
  bytesMax: 100,
  authorsMax: 6,
  resubmitAfterMs: 5_000,
  resubmitJitterMs: 1_000,
  resubmitsMax: 2,
  resubmitsAtOnceMax: 3,
};
const ann = "ann_____________" as ClientId;
const bob = "bob_____________" as ClientId;
const at = (ms: number): Millis => (1_000_000 + ms) as Millis;
const tentativeEdits = (options: Partial<TentativeOptions> = {}): TentativeEdits =>
  new TentativeEdits({ ...OPTIONS, ...options }, () => 0.5);

function edit(client: ClientId, counter: number, ackedThrough = 0, payloadBytes = 1): TentativeEdit {
  return {
    epoch: 1 as Epoch,
    user: "u" as UserId,
    client,
    counter,
    ackedThrough,
    parentSeq: 0 as Seq,
    mac: new Uint8Array(),
    payload: new Uint8Array(payloadBytes),
  };
}
const names = (edits: readonly TentativeEdit[]): string[] => edits.map(({ client, counter }) => `${client.slice(0, 3)} ${counter}`);

test("[TNT1] each author's tentative edits are shown in order, each once", () => {
  const held = tentativeEdits();
  expect(names(held.receiveTentative(edit(ann, 1)))).toEqual(["ann 1"]);
  expect(names(held.receiveTentative(edit(ann, 3)))).toEqual([]);
  expect(names(held.receiveTentative(edit(bob, 1)))).toEqual(["bob 1"]);
  expect(names(held.receiveTentative(edit(ann, 2)))).toEqual(["ann 2", "ann 3"]);
  expect(names(held.receiveTentative(edit(ann, 2)))).toEqual([]);
});

test("[TNT2] a tentative edit at or below its author's committed counter is dropped, however late it arrives", () => {
  const held = tentativeEdits();
  held.receiveCommitted(ann, 4);
  expect(names(held.receiveTentative(edit(ann, 3)))).toEqual([]);
  expect(names(held.receiveTentative(edit(ann, 4)))).toEqual([]);
  expect(held.size).toBe(0);
  expect(names(held.receiveTentative(edit(ann, 5)))).toEqual(["ann 5"]);
});

test("[TNT3] an edit that its author knows to be committed need not have been seen here", () => {
  const held = tentativeEdits();
  expect(names(held.receiveTentative(edit(ann, 8, 7)))).toEqual(["ann 8"]);
  expect(names(held.receiveTentative(edit(bob, 8, 6)))).toEqual([]);
  expect(names(held.receiveCommitted(bob, 7)), "its turn has come").toEqual(["bob 8"]);
});

test("[TNT4] a tentative edit is kept until its committed form arrives", () => {
  const held = tentativeEdits();
  for (const counter of [1, 2, 3]) held.receiveTentative(edit(ann, counter));
  held.receiveCommitted(ann, 2);
  expect(held.size).toBe(1);
  held.receiveSaved(at(0));
  held.receiveCommitted(ann, 3);
  expect([held.size, held.dueAt]).toEqual([0, undefined]);
});

test("[TNT5] edits that stay unconfirmed after the log is back are submitted again, in order, a limited number of times", () => {
  const held = tentativeEdits();
  for (const counter of [2, 1]) held.receiveTentative(edit(ann, counter));
  expect(held.dueAt, "the log is slow still").toBeUndefined();
  held.receiveSaved(at(0));
  expect(held.dueAt).toBe(at(5_500));
  expect(held.takeDue(at(5_499)).resubmit).toEqual([]);
  expect(names(held.takeDue(at(5_500)).resubmit)).toEqual(["ann 1", "ann 2"]);
  held.receiveUnsaved();
  expect(held.takeDue(at(60_000)).resubmit).toEqual([]);
  held.receiveSaved(at(60_000));
  expect(names(held.takeDue(at(65_500)).resubmit)).toEqual(["ann 1", "ann 2"]);
  expect(held.takeDue(at(71_000)).resubmit).toEqual([]);
  expect([held.size, held.dueAt]).toEqual([0, undefined]);
});

test("[TNT5] a limited number of edits is submitted again at once", () => {
  const held = tentativeEdits();
  for (const counter of [1, 2, 3, 4]) held.receiveTentative(edit(ann, counter));
  held.receiveTentative(edit(bob, 1));
  held.receiveSaved(at(0));
  expect(names(held.takeDue(at(6_000)).resubmit)).toEqual(["ann 1", "ann 2", "ann 3"]);
});

test("[TNT6] held edits are bounded by number and bytes; above that edits are neither shown nor kept", () => {
  const many = tentativeEdits();
  for (let counter = 1; counter <= 9; counter++) many.receiveTentative(edit(ann, counter));
  expect(many.size).toBe(5);
  const large = tentativeEdits();
  expect(names(large.receiveTentative(edit(ann, 1, 0, 90)))).toEqual(["ann 1"]);
  expect(names(large.receiveTentative(edit(ann, 2, 0, 11)))).toEqual([]);
  expect(large.size).toBe(1);
});

test("[TNT7] authors are forgotten after a long time, except those whose edits are held", () => {
  const held = tentativeEdits();
  held.receiveTentative(edit(ann, 1));
  const others = Array.from({ length: 50 }, (_, other) => `c${other}`.padEnd(16, "_") as ClientId);
  for (const other of others) held.receiveCommitted(other, 1);
  expect(names(held.receiveTentative(edit(ann, 1))), "held").toEqual([]);
  expect(names(held.receiveTentative(edit(others.at(-1)!, 1))), "remembered").toEqual([]);
  expect(names(held.receiveTentative(edit(others[0]!, 1))), "forgotten").toEqual(["c0_ 1"]);
  held.receiveCommitted(others[0]!, 1);
  held.receiveCommitted(ann, 1);
  expect(held.size).toBe(0);
});

test("[TNT8] an edit that was shown and submitted as often as allowed is reported as unconfirmed once; an edit that was never shown is not", () => {
  const held = tentativeEdits();
  for (const counter of [1, 3]) held.receiveTentative(edit(ann, counter));
  const givenUp: string[][] = [];
  for (let round = 0; round < 4; round++) {
    held.receiveSaved(at(round * 10_000));
    givenUp.push(names(held.takeDue(at(round * 10_000 + 6_000)).unconfirmed));
  }
  expect(givenUp).toEqual([[], [], ["ann 1"], []]);
  expect(held.size).toBe(0);
});

test("[TNT9] an edit whose bytes another client submitted as its own is released", () => {
  const held = tentativeEdits();
  held.receiveTentative(edit(ann, 1, 0, 3));
  held.receiveSame(new Uint8Array(3)); // The edit was not submitted yet, so an equal edit of another author may be a coincidence.
  expect(held.size).toBe(1);
  held.receiveSaved(at(0));
  held.takeDue(at(6_000));
  held.receiveSame(new Uint8Array(4));
  expect(held.size).toBe(1);
  held.receiveSame(new Uint8Array(3));
  expect([held.size, held.dueAt]).toEqual([0, undefined]);
});

test("[TNT10] only shown, uncommitted edits count as shown: not edits that wait for their turn", () => {
  const held = tentativeEdits();
  held.receiveTentative(edit(ann, 2));
  expect(held.isShowing).toBe(false);
  held.receiveTentative(edit(bob, 1));
  expect(held.isShowing).toBe(true);
  held.receiveCommitted(bob, 1);
  expect(held.isShowing).toBe(false);
});
