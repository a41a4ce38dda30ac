import { expect, test } from "vitest";

import type { ClientId, Epoch, Seq } from "../../shared/ids.ts";
import type { CommittedEdits } from "../../shared/wire/frames.ts";
import { RoomJudge } from "./room-judge.ts";

const [ANN, BOB] = ["ann_____________", "bob_____________"] as ClientId[] as [ClientId, ClientId];

test("two members that get the same order are content", () => {
  const judge = roomOfTwo();
  judge.receive(0, judge.stretchOf(edits(1, [ANN, 1], [BOB, 1])));
  judge.receive(1, judge.stretchOf(edits(1, [ANN, 1])));
  expect(judge.everywhere()).toBe(1);

  judge.receive(1, judge.stretchOf(edits(2, [BOB, 1])));
  expect(judge.everywhere()).toBe(2);
  expect(judge.distinctEdits()).toBe(2);
});

test("a seq left out is told", () => {
  const judge = roomOfTwo();
  expect(() => judge.receive(0, judge.stretchOf(edits(2, [ANN, 1])))).toThrow("got seq 2 after 0");
});

test("a seq that comes twice is told", () => {
  const judge = roomOfTwo();
  judge.receive(0, judge.stretchOf(edits(1, [ANN, 1])));
  expect(() => judge.receive(0, judge.stretchOf(edits(1, [ANN, 1])))).toThrow("got seq 1 after 1");
});

test("a seq that is another edit for another member is told", () => {
  const judge = roomOfTwo();
  judge.receive(0, judge.stretchOf(edits(1, [ANN, 1])));
  expect(() => judge.receive(1, judge.stretchOf(edits(1, [BOB, 1])))).toThrow("two edits");
});

test("an edit ordered twice is told, and one left out", () => {
  const [twice, leftOut] = [roomOfTwo(), roomOfTwo()];
  expect(() => twice.receive(0, twice.stretchOf(edits(1, [ANN, 1], [ANN, 1])))).toThrow("whose last was 1");
  expect(() => leftOut.receive(0, leftOut.stretchOf(edits(1, [ANN, 2])))).toThrow("whose last was 0");
});

test("an edit of somebody who is not there is told", () => {
  expect(() => roomOfTwo().stretchOf(edits(1, ["eve_____________" as ClientId, 1]))).toThrow("nobody in the room");
});

function roomOfTwo(): RoomJudge {
  const judge = new RoomJudge();
  for (const client of [ANN, BOB]) {
    judge.addMember();
    judge.addWriter(client);
  }
  return judge;
}

function edits(firstSeq: number, ...authors: [ClientId, number][]): CommittedEdits {
  return {
    epoch: 1 as Epoch,
    firstSeq: firstSeq as Seq,
    edits: authors.map(([client, counter], index) => ({
      client,
      counter,
      parentSeq: (firstSeq + index - 1) as Seq,
      payload: new Uint8Array(1),
    })),
  };
}
