import { expect, test } from "vitest";

import type { ClientId, Epoch, Position, Seq } from "../../shared/ids.ts";
import type { RoomSessionEffect } from "../room/room-messages.ts";
import { DocumentChanges } from "./document-changes.ts";

const at = (seq: number): Position => ({ epoch: 1 as Epoch, seq: seq as Seq });
const rolledBack: RoomSessionEffect = { kind: "log-rolled-back" };
const snapshot = (seq: number): RoomSessionEffect => ({ kind: "load-snapshot", position: at(seq), payload: new Uint8Array(10) });
const edit = (seq: number, bytes = 1): RoomSessionEffect => {
  const payload = new Uint8Array(bytes);
  return { kind: "deliver", edits: [{ seq: seq as Seq, client: "ann_____________" as ClientId, counter: seq, payload, own: false }] };
};

function changesOf(...effects: RoomSessionEffect[]): DocumentChanges {
  const changes = new DocumentChanges(1_000);
  observe(changes, ...effects);
  return changes;
}
function observe(changes: DocumentChanges, ...effects: RoomSessionEffect[]): void {
  for (const effect of effects) changes.observe(effect, at(effect.kind === "deliver" ? effect.edits.at(-1)!.seq : 0));
}
const taken = (changes: DocumentChanges): string[] =>
  changes.take().map((change) => (change.kind === "forgotten" ? change.kind : `${change.kind} ${change.position.seq}`));

test("[KDC1] changes are taken once if the write succeeded, and again if it failed", () => {
  const changes = changesOf(edit(1), edit(2));
  expect(taken(changes)).toEqual(["continued 1", "continued 2"]);
  changes.notKept();
  observe(changes, edit(3));
  expect(taken(changes)).toEqual(["continued 1", "continued 2", "continued 3"]);
  observe(changes, edit(4));
  changes.kept();
  expect([taken(changes), changes.isWaiting]).toEqual([["continued 4"], true]);
  changes.kept();
  expect([taken(changes), changes.isWaiting]).toEqual([[], false]);
});

test("[KDC2] a snapshot replaces earlier changes, except those that are being written", () => {
  const changes = changesOf(edit(1));
  changes.take();
  observe(changes, edit(2), snapshot(7), edit(8));
  changes.kept();
  expect(taken(changes)).toEqual(["begun 7", "continued 8"]);
});

test("[KDC3] above the byte limit only contiguous changes are taken, until a snapshot starts again", () => {
  const changes = changesOf(edit(1, 800), edit(2, 800), edit(3));
  expect(taken(changes)).toEqual(["continued 1"]);
  changes.kept();
  observe(changes, edit(4), snapshot(5), edit(6));
  expect(taken(changes)).toEqual(["begun 5", "continued 6"]);
});

test("[KDC4] nothing of a log that was rolled back is written before the room is complete", () => {
  const changes = changesOf(edit(1), rolledBack, snapshot(1), edit(2));
  expect([taken(changes), changes.isWaiting]).toEqual([[], false]);
  changes.kept();
  changes.release();
  expect(changes.isWaiting).toBe(true);
  expect(taken(changes)).toEqual(["forgotten", "begun 1", "continued 2"]);
});
