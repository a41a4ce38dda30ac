import { expect, test } from "vitest";

import type { Epoch, Position, Seq, UnixMillis } from "../ids.ts";
import type { OwnersRecord } from "./record.ts";
import { type EpochHistory, EPOCHS_MAX, isForgotten, NO_EPOCHS, checkPosition, withEpoch, withNext } from "./epoch-history.ts";

const position = (epoch: number, seq: number): Position => ({ epoch: epoch as Epoch, seq: seq as Seq });

function historyOf(...epochs: readonly (readonly [epoch: number, head: number])[]): EpochHistory {
  return epochs.reduce((history, [epoch, head]) => withEpoch(history, epoch as Epoch, head as Seq), NO_EPOCHS);
}

/** Epoch 3 ordered seqs 1 to 10, epoch 5 up to 20, epoch 7 none, epoch 9 the rest. */
const HISTORY = historyOf([3, 0], [5, 10], [7, 20], [9, 20]);
const HEAD = 25 as Seq;
const standings = (epoch: number, ...seqs: readonly number[]) => seqs.map((seq) => checkPosition(position(epoch, seq), HISTORY, HEAD));

test("[EPH1] a position belongs to the log if it is at or before the end of its epoch", () => {
  expect(standings(3, 1, 10, 11)).toEqual(["of-this-log", "of-this-log", "other-epoch"]);
  expect(standings(5, 1, 20, 21)).toEqual(["of-this-log", "of-this-log", "other-epoch"]);
  expect(standings(7, 20, 21)).toEqual(["of-this-log", "other-epoch"]);
  expect(standings(9, 1, 25)).toEqual(["of-this-log", "of-this-log"]);
});

test("[EPH2] a position in an epoch that the log does not have is refused, whether its number is lower or higher", () => {
  for (const epoch of [0, 1, 4, 6, 8, 10]) expect(standings(epoch, 1, 15, 25)).toEqual(["other-epoch", "other-epoch", "other-epoch"]);
});

test("[EPH3] a position after the head is ahead, and the empty position belongs to every log", () => {
  expect(standings(9, 26)).toEqual(["ahead"]);
  expect(standings(4, 26)).toEqual(["ahead"]);
  expect(standings(0, 0)).toEqual(["of-this-log"]);
  expect(checkPosition(position(0, 0), NO_EPOCHS, 0 as Seq)).toBe("of-this-log");
});

test("[EPH4] repeated records change nothing, and an epoch before the known ones is not added after them", () => {
  const again = [3, 5, 9].reduce((history, epoch) => withEpoch(history, epoch as Epoch, 24 as Seq), HISTORY);
  expect(again).toBe(HISTORY);
});

const FULL = historyOf(...Array.from({ length: EPOCHS_MAX }, (_, index) => [index + 1, index] as const));
/** The first that is opened later. */
const NEXT = EPOCHS_MAX + 8;
const opened = (history: EpochHistory, times: number, head: number, kept?: number): EpochHistory =>
  Array.from({ length: times }, (_, index) => NEXT + index).reduce(
    (known, epoch) => withEpoch(known, epoch as Epoch, head as Seq, kept as Epoch | undefined),
    history,
  );

test("[EPH5] above the limit the oldest epoch without edits is removed first, then the oldest", () => {
  expect(isForgotten(1 as Epoch, FULL)).toBe(false);
  const known = (history: EpochHistory, epoch: number) => checkPosition(position(epoch, 1), history, (NEXT + 20) as Seq) === "of-this-log";
  const some = opened(FULL, 3, NEXT);
  expect([1, 3, 4, EPOCHS_MAX, NEXT, NEXT + 2].map((epoch) => known(some, epoch))).toEqual([false, false, true, true, true, true]);
  const many = opened(FULL, 12, NEXT);
  expect([8, 9, EPOCHS_MAX, NEXT, NEXT + 3, NEXT + 4, NEXT + 11].map((epoch) => known(many, epoch))).toEqual([
    false,
    true,
    true,
    false,
    false,
    true,
    true,
  ]);
  expect([FULL.length, some.length, many.length]).toEqual([2 * EPOCHS_MAX, 2 * EPOCHS_MAX, 2 * EPOCHS_MAX]);
  expect([isForgotten(8 as Epoch, many), isForgotten(9 as Epoch, many)]).toEqual([true, false]);
  expect(isForgotten(2 as Epoch, HISTORY)).toBe(false);
  const oldestIsEmpty = historyOf(...Array.from({ length: EPOCHS_MAX + 1 }, (_, index) => [index + 1, Math.max(2, index)] as const));
  expect([1, 2].map((epoch) => known(oldestIsEmpty, epoch))).toEqual([false, true]);
});

test("[EPH7] positions in the newest epochs are known even if these have no edits", () => {
  const handedOver = opened(FULL, 2, EPOCHS_MAX);
  expect(checkPosition(position(NEXT, EPOCHS_MAX), handedOver, EPOCHS_MAX as Seq)).toBe("of-this-log");
});

test("[EPH8] the checkpoint's epoch is never removed, however many epochs follow", () => {
  for (const history of [historyOf([5, 10]), FULL]) {
    const [kept, seq] = [history.at(-2)!, history === FULL ? EPOCHS_MAX : 10];
    expect(checkPosition(position(kept, seq), opened(history, 2 * EPOCHS_MAX, seq, kept), seq as Seq)).toBe("of-this-log");
  }
  const busy = Array.from({ length: 2 * EPOCHS_MAX }, (_, index) => index + 40).reduce(
    (history, epoch) => withEpoch(history, epoch as Epoch, epoch as Seq, 5 as Epoch),
    historyOf([5, 10]),
  );
  expect([busy.length, checkPosition(position(5, 40), busy, 1_000 as Seq)]).toEqual([2 * EPOCHS_MAX, "of-this-log"]);
});

test("[EPH9] a record of an earlier epoch shows that the log has lost the later epochs", () => {
  const record: OwnersRecord = { kind: "epoch", id: "s.5", time: 0 as UnixMillis, epoch: 5 as Epoch, head: 18 as Seq };
  const gone = withNext(HISTORY, record);
  expect(checkPosition(position(5, 24), gone, HEAD)).toBe("of-this-log");
  expect([7, 9].map((epoch) => checkPosition(position(epoch, 20), gone, HEAD))).toEqual(["other-epoch", "other-epoch"]);
  expect(checkPosition(position(3, 10), gone, HEAD)).toBe("of-this-log");
  expect(withNext(HISTORY, { ...record, epoch: 9 as Epoch })).toBe(HISTORY);
});

test("[EPH6] removing an epoch moves the end of no other epoch", () => {
  const full = historyOf(...Array.from({ length: EPOCHS_MAX + 4 }, (_, index) => [index + 1, 10 * (index >> 1)] as const));
  expect(full.length).toBe(2 * EPOCHS_MAX);
  for (let epoch = 10; epoch <= EPOCHS_MAX; epoch += 2) {
    const end = 10 * (epoch >> 1);
    const at = (seq: number) => checkPosition(position(epoch, seq), full, 10_000 as Seq);
    expect([at(end), at(end + 1)]).toEqual(["of-this-log", "other-epoch"]);
  }
});

test("[EPH10] removing an epoch to keep the checkpoint's epoch moves no end: a position after its end stays refused", () => {
  const busy = Array.from({ length: 2 * EPOCHS_MAX }, (_, index) => index + 40).reduce(
    (history, epoch) => withEpoch(history, epoch as Epoch, epoch as Seq, 5 as Epoch),
    historyOf([5, 10]),
  );
  const at = (epoch: number, seq: number) => checkPosition(position(epoch, seq), busy, 1_000 as Seq);
  const last = 2 * EPOCHS_MAX + 39;
  expect([at(5, 40), at(5, 41), at(5, 60)]).toEqual(["of-this-log", "other-epoch", "other-epoch"]);
  expect(at(40, 41)).toBe("other-epoch");
  expect([at(last, last + 1), at(last - 1, last), at(last - 1, last + 1)]).toEqual(["of-this-log", "of-this-log", "other-epoch"]);
});

test("[EPH11] a client that was away for four months is known, with a new owner of the room each working day", () => {
  const busy = historyOf(...Array.from({ length: 90 }, (_, index) => [index + 1, 10 * index] as const));
  expect(checkPosition(position(1, 10), busy, 900 as Seq)).toBe("of-this-log");
});
