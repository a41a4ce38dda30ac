import { expect, test } from "vitest";

import type { ClientId, Epoch, Seq } from "../../shared/ids.ts";
import type { CommittedEdits } from "../../shared/wire/frames.ts";
import { RoomJudge } from "./room-judge.ts";

const [ANN, BOB] = ["ann_____________", "bob_____________"] as ClientId[] as [ClientId, ClientId];

test("members that receive the same order pass", () => {
  const judge = roomOfTwo();
  judge.receive(0, judge.stretchOf(edits(1, [ANN, 1], [BOB, 1])));
  judge.receive(1, judge.stretchOf(edits(1, [ANN, 1])));
  expect(judge.everywhere()).toBe(1);

  judge.receive(1, judge.stretchOf(edits(2, [BOB, 1])));
  expect(judge.everywhere()).toBe(2);
  expect(judge.distinctEdits()).toBe(2);
});

test("the judge reports a missing seq", () => {
  const judge = roomOfTwo();
  expect(() => judge.receive(0, judge.stretchOf(edits(2, [ANN, 1])))).toThrow("got seq 2 after 0");
});

test("the judge reports a repeated seq", () => {
  const judge = roomOfTwo();
  judge.receive(0, judge.stretchOf(edits(1, [ANN, 1])));
  expect(() => judge.receive(0, judge.stretchOf(edits(1, [ANN, 1])))).toThrow("got seq 1 after 1");
});

test("the judge reports a seq with different edits for two members", () => {
  const judge = roomOfTwo();
  judge.receive(0, judge.stretchOf(edits(1, [ANN, 1])));
  expect(() => judge.receive(1, judge.stretchOf(edits(1, [BOB, 1])))).toThrow("two edits");
});

test("the judge reports an edit ordered twice, and an edit left out", () => {
  const [twice, leftOut] = [roomOfTwo(), roomOfTwo()];
  expect(() => twice.receive(0, twice.stretchOf(edits(1, [ANN, 1], [ANN, 1])))).toThrow("whose last was 1");
  expect(() => leftOut.receive(0, leftOut.stretchOf(edits(1, [ANN, 2])))).toThrow("whose last was 0");
});

test("the judge reports an edit of an unknown client", () => {
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
