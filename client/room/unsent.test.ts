import { expect, test } from "vitest";

import { type EditFormat, Unsent } from "./unsent.ts";

const format: EditFormat = {
  merge: (payloads) => Uint8Array.from(payloads.flatMap((payload) => [...payload])),
  split: (payload, bytesMax) =>
    payload[0] === 99
      ? undefined
      : Array.from({ length: Math.ceil(payload.length / bytesMax) }, (_, index) => payload.slice(index * bytesMax, (index + 1) * bytesMax)),
};
const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);
const unsent = (options: Partial<ConstructorParameters<typeof Unsent>[0]> = {}): Unsent =>
  new Unsent({ format, mergeUnsent: true, unsentBytesMax: 1_000_000, ...options });

function takeAll(from: Unsent, bytesMax = 1_000): string[] {
  const taken: string[] = [];
  while (!from.isEmpty) {
    const next = from.take(bytesMax);
    taken.push(next.kind === "taken" ? `${next.edit.payload} made ${next.edit.made}` : `too large ${next.payload}`);
  }
  return taken;
}

test("[UNS1] edits that wait together go out as one", () => {
  const waiting = unsent();
  for (const value of [1, 2, 3]) waiting.add(bytes(value));
  expect(waiting.made).toBe(3);
  expect(takeAll(waiting)).toEqual(["1,2,3 made 3"]);
  expect(waiting.made).toBe(0);
});

test("[UNS1] as many edits are merged as fit", () => {
  const waiting = unsent();
  for (const value of [1, 2, 3, 4, 5]) waiting.add(bytes(value));
  expect(takeAll(waiting, 2)).toEqual(["1,2 made 2", "3,4 made 2", "5 made 1"]);
});

test("[UNS2] without a format, or with merging off, each edit goes out alone", () => {
  for (const options of [{ format: undefined }, { mergeUnsent: false }]) {
    const waiting = unsent(options);
    for (const value of [1, 2]) waiting.add(bytes(value));
    expect(takeAll(waiting)).toEqual(["1 made 1", "2 made 1"]);
  }
});

test("[UNS3] an edit that is too large is cut, and still counts as one edit", () => {
  const waiting = unsent({ mergeUnsent: false });
  waiting.add(bytes(1, 2, 3, 4, 5));
  waiting.add(bytes(6));
  expect(takeAll(waiting, 2)).toEqual(["1,2 made 0", "3,4 made 0", "5 made 1", "6 made 1"]);
});

test("[UNS3] an edit that cannot be cut is removed, and later edits continue", () => {
  const waiting = unsent();
  waiting.add(bytes(99, 0, 0));
  waiting.add(bytes(6));
  expect(takeAll(waiting, 2)).toEqual(["too large 99,0,0", "6 made 1"]);
  expect(waiting.made).toBe(0);
});

test("[UNS3] edits are not merged when the result would exceed the limit", () => {
  const growing: EditFormat = { ...format, merge: (payloads) => new Uint8Array(payloads.length * 100) };
  const waiting = unsent({ format: growing });
  for (const value of [1, 2]) waiting.add(bytes(value));
  expect(takeAll(waiting, 50)).toEqual(["1 made 1", "2 made 1"]);
});

test("[UNS4] above the limit no further edit is merged; a single edit always is accepted", () => {
  const waiting = unsent({ unsentBytesMax: 3 });
  expect(waiting.add(bytes(1, 2, 3, 4))).toBe(true);
  expect(waiting.add(bytes(5))).toBe(false);
  takeAll(waiting);
  expect([waiting.add(bytes(1, 2)), waiting.add(bytes(3)), waiting.add(bytes(4))]).toEqual([true, true, false]);
});

test("[UNS5] edits of hours of offline typing are stored in few pieces, in order", () => {
  let merges = 0;
  const counting: EditFormat = { ...format, merge: (payloads) => ((merges += 1), format.merge(payloads)) };
  const waiting = unsent({ format: counting });
  const typed = Array.from({ length: 20_000 }, (_, index) => index % 251);
  for (const value of typed) waiting.add(bytes(value));
  expect(merges).toBeLessThan(100);
  expect(waiting.made).toBe(typed.length);
  const sent: number[] = [];
  while (!waiting.isEmpty) {
    const next = waiting.take(100_000);
    if (next.kind === "taken") sent.push(...next.edit.payload);
  }
  expect(sent).toEqual(typed);
});
