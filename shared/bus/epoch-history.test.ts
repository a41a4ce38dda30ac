import { expect, test } from "vitest";

import type { Epoch, Position, Seq } from "../ids.ts";
import { type EpochHistory, EPOCHS_MAX, isForgotten, NO_EPOCHS, standingOf, withEpoch } from "./epoch-history.ts";

const position = (epoch: number, seq: number): Position => ({ epoch: epoch as Epoch, seq: seq as Seq });

function historyOf(...epochs: readonly (readonly [epoch: number, head: number])[]): EpochHistory {
  return epochs.reduce((history, [epoch, head]) => withEpoch(history, epoch as Epoch, head as Seq), NO_EPOCHS);
}

/** Epoch 3 ordered seqs 1 to 10, epoch 5 up to 20, epoch 7 none, epoch 9 the rest. */
const HISTORY = historyOf([3, 0], [5, 10], [7, 20], [9, 20]);
const HEAD = 25 as Seq;
const standings = (epoch: number, ...seqs: readonly number[]) => seqs.map((seq) => standingOf(position(epoch, seq), HISTORY, HEAD));

test("[EPH1] a position is of the log up to where its epoch came", () => {
  expect(standings(3, 1, 10, 11)).toEqual(["of-this-log", "of-this-log", "other-epoch"]);
  expect(standings(5, 1, 20, 21)).toEqual(["of-this-log", "of-this-log", "other-epoch"]);
  expect(standings(7, 20, 21)).toEqual(["of-this-log", "other-epoch"]);
  expect(standings(9, 1, 25)).toEqual(["of-this-log", "of-this-log"]);
});

test("[EPH2] one of an epoch that the log does not know is not, however its number lies to those that ordered the edits", () => {
  for (const epoch of [0, 1, 4, 6, 8, 10]) expect(standings(epoch, 1, 15, 25)).toEqual(["other-epoch", "other-epoch", "other-epoch"]);
});

test("[EPH3] nobody is ahead of the log, and all logs begin with nothing", () => {
  expect(standings(9, 26)).toEqual(["ahead"]);
  expect(standings(4, 26)).toEqual(["ahead"]);
  expect(standings(0, 0)).toEqual(["of-this-log"]);
  expect(standingOf(position(0, 0), NO_EPOCHS, 0 as Seq)).toBe("of-this-log");
});

test("[EPH4] what is read again changes nothing, and an epoch before those that are known is not put behind them", () => {
  const again = [3, 5, 9].reduce((history, epoch) => withEpoch(history, epoch as Epoch, 24 as Seq), HISTORY);
  expect(again).toBe(HISTORY);
});

test("[EPH5] of too many epochs the oldest that no edit is of goes first, and then the oldest", () => {
  const busy = historyOf(...Array.from({ length: EPOCHS_MAX }, (_, index) => [index + 1, index] as const));
  expect(isForgotten(1 as Epoch, busy)).toBe(false);
  const quiet = [40, 41, 42].reduce((history, epoch) => withEpoch(history, epoch as Epoch, 50 as Seq), busy);
  expect([busy.length, quiet.length]).toEqual([2 * EPOCHS_MAX, 2 * EPOCHS_MAX]);
  const known = (epoch: number) => standingOf(position(epoch, 1), quiet, 60 as Seq);
  expect([1, 2, 32, 40, 41, 42].map(known)).toEqual([
    "other-epoch",
    "of-this-log",
    "of-this-log",
    "other-epoch",
    "other-epoch",
    "of-this-log",
  ]);
  expect([isForgotten(1 as Epoch, quiet), isForgotten(2 as Epoch, quiet)]).toEqual([true, false]);
});

test("[EPH6] an epoch that is left out moves no other's end", () => {
  const full = historyOf(...Array.from({ length: EPOCHS_MAX + 4 }, (_, index) => [index + 1, 10 * (index >> 1)] as const));
  expect(full.length).toBe(2 * EPOCHS_MAX);
  for (let epoch = 10; epoch <= EPOCHS_MAX; epoch += 2) {
    const end = 10 * (epoch >> 1);
    const at = (seq: number) => standingOf(position(epoch, seq), full, 1_000 as Seq);
    expect([at(end), at(end + 1)]).toEqual(["of-this-log", "other-epoch"]);
  }
});
