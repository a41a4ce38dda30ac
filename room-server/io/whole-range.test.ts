import { expect, test } from "vitest";

import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { wholeRange } from "./jetstream-log.ts";

const at = (streamSeq: number) => ({ streamSeq });

/** `shows`: the last record that a replica has at each read; the last value repeats. */
function rangeOf(log: readonly number[], shows: readonly number[], after: number, through: number) {
  const clock = new FakeClock();
  const asked: number[] = [];
  const readOn = async function* (read: number) {
    const end = shows[Math.min(asked.push(read), shows.length) - 1]!;
    yield* log.filter((streamSeq) => streamSeq > read && streamSeq <= end).map(at);
  };
  const read: number[] = [];
  const result = (async () => {
    for await (const { streamSeq } of wholeRange(readOn, after, through, clock)) read.push(streamSeq);
    return read;
  })();
  return { result, read, asked, advance: () => clock.advance(2_000) };
}

test("[WHR1] a read ends with the requested last record; if that record was trimmed, the read excludes all later records", async () => {
  expect(await rangeOf([2, 5, 7, 9], [9], 2, 7).result).toEqual([5, 7]);
  expect(await rangeOf([8, 9], [9], 0, 7).result).toEqual([]);
});

test("[WHR2] an empty range causes no read", async () => {
  const { result, asked } = rangeOf([2, 5], [5], 5, 5);
  expect([await result, asked]).toEqual([[], []]);
});

test("[WHR3] records that a replica behind its leader lacks are read once it has them, and none is read twice", async () => {
  const { result, asked, advance } = rangeOf([1, 2, 3, 4], [2, 2, 4], 0, 4);
  await advance();
  expect([await result, asked]).toEqual([
    [1, 2, 3, 4],
    [0, 2, 2],
  ]);
});

test("[WHR4] a replica that stays behind does not count as the log's end", async () => {
  const { result, read, asked, advance } = rangeOf([1, 2, 3, 4], [2], 0, 4);
  const outcome = expect(result).rejects.toThrow(/far behind/);
  await advance();
  await outcome;
  expect([read, asked.length]).toEqual([[1, 2], 9]);
});
