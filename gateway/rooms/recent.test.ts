import { expect, test } from "vitest";

import type { Epoch, Millis, Seq } from "../../shared/ids.ts";
import type { CommittedBatch } from "../../shared/wire/committed-edits.ts";
import { Recent } from "./recent.ts";

const at = (ms: number): Millis => ms as Millis;

function batch(first: number, last: number, epoch = 1): CommittedBatch {
  return { epoch: epoch as Epoch, firstSeq: first as Seq, lastSeq: last as Seq, runs: [], bytes: Uint8Array.of(first, last) };
}

function filled(options = { recentBytesMax: 10_000, recentMsMax: 1_000 }): Recent {
  const recent = new Recent(options);
  recent.append(batch(5, 6), at(0));
  recent.append(batch(7, 7), at(500));
  recent.append(batch(8, 9, 2), at(600));
  return recent;
}

const after = (recent: Recent, seq: number): number[][] | undefined => recent.after(seq as Seq)?.map((bytes) => [...bytes]);

test("[RCT1] after a seq, complete batches are returned from the one that follows it", () => {
  expect(after(filled(), 4)).toEqual([
    [5, 6],
    [7, 7],
    [8, 9],
  ]);
  expect(after(filled(), 5)).toEqual([
    [5, 6],
    [7, 7],
    [8, 9],
  ]);
  expect(after(filled(), 7)).toEqual([[8, 9]]);
});

test("[RCT8] of a range, the batches to the one with its end are returned", () => {
  const range = (seq: number, through: number) =>
    filled()
      .after(seq as Seq, through as Seq)
      ?.map((bytes) => [...bytes]);
  expect(range(4, 5)).toEqual([[5, 6]]);
  expect(range(5, 7)).toEqual([
    [5, 6],
    [7, 7],
  ]);
  expect(range(6, 8)).toEqual(after(filled(), 6));
  expect(range(6, 20), "beyond the head").toEqual(after(filled(), 6));
  expect(range(3, 5)).toBeUndefined();
});

test("[RCT2] nothing is returned where a gap would remain", () => {
  expect(after(filled(), 3)).toBeUndefined();
  expect(after(filled(), 9)).toBeUndefined();
});

test("[RCT3] entries are forgotten by age and bytes, the oldest first", () => {
  const recent = filled();
  recent.expire(at(1_001));
  expect(after(recent, 4)).toBeUndefined();
  expect(after(recent, 6)).toEqual([
    [7, 7],
    [8, 9],
  ]);
  expect(after(filled({ recentBytesMax: 250, recentMsMax: 1_000 }), 6)).toEqual([
    [7, 7],
    [8, 9],
  ]);
});

test("[RCT4] a position counts in the epoch that ordered its edit and in the owner's, but in none between them", () => {
  const recent = filled();
  const vouchesFor = (epoch: number, seq: number) => recent.vouchesFor({ epoch: epoch as Epoch, seq: seq as Seq }, 4 as Epoch);
  expect([1, 2, 3, 4].map((epoch) => vouchesFor(epoch, 6))).toEqual([true, false, false, true]);
  expect([1, 2, 3, 4].map((epoch) => vouchesFor(epoch, 8))).toEqual([false, true, false, true]);
  expect([2, 4].map((epoch) => vouchesFor(epoch, 4))).toEqual([false, false]);
});

test("[RCT6] the position before the first entry counts too", () => {
  const position = (epoch: number, seq: number) => ({ epoch: epoch as Epoch, seq: seq as Seq });
  const vouches = (recent: Recent, epoch: number, seq: number) => recent.vouchesFor(position(epoch, seq), 2 as Epoch);
  const forgetful = filled();
  forgetful.expire(at(1_501));
  expect([vouches(forgetful, 1, 7), vouches(forgetful, 1, 6)]).toEqual([true, false]);
  expect(after(forgetful, 7)).toEqual([[8, 9]]);

  const followed = new Recent({ recentBytesMax: 10_000, recentMsMax: 1_000 });
  followed.beginAfter(position(2, 4));
  followed.append(batch(5, 6, 2), at(0));
  expect([vouches(followed, 2, 4), vouches(followed, 1, 4), vouches(followed, 2, 3)]).toEqual([true, false, false]);
  expect(after(followed, 4)).toEqual([[5, 6]]);

  const fresh = new Recent({ recentBytesMax: 10_000, recentMsMax: 1_000 });
  fresh.beginAfter(position(1, 0));
  expect(vouches(fresh, 0, 0), "all logs begin with nothing").toBe(true);
});

test("[RCT5] entries keep bytes of their own, because the bus reuses its buffers", () => {
  const recent = new Recent({ recentBytesMax: 10_000, recentMsMax: 1_000 });
  const lent = batch(1, 1);
  recent.append(lent, at(0));
  lent.bytes.fill(0xff);
  expect(after(recent, 0)).toEqual([[1, 1]]);
});
