import { expect, test } from "vitest";

import type { ConnectionId } from "../../ports.ts";
import { AwaitedReads } from "./awaited-reads.ts";

const ann = 1 as ConnectionId;

/** Waits for a connection with this number of unread bytes. */
function waiting(unread: { bytes: number }) {
  const turns: (() => void)[] = [];
  const open = new Map([[ann, { getBufferedAmount: () => unread.bytes }]]);
  const reads = new AwaitedReads(open, (run) => void turns.push(run));
  return { open, reads, endTurn: () => turns.splice(0).forEach((run) => run()) };
}

test("[ARD1] a caller continues at the end of the turn if all data was written, and once the client has read it otherwise", () => {
  const unread = { bytes: 0 };
  const { reads, endTurn } = waiting(unread);
  const continued: string[] = [];
  reads.add(ann, () => continued.push("first"));
  expect(continued).toEqual([]);
  endTurn();
  unread.bytes = 500;
  reads.add(ann, () => continued.push("second"));
  endTurn();
  unread.bytes = 1;
  reads.receiveDrained(ann);
  expect(continued).toEqual(["first"]);
  unread.bytes = 0;
  reads.receiveDrained(ann);
  expect(continued).toEqual(["first", "second"]);
});

test("[ARD2] the callers of a connection continue one at a time, the next one although the one before sent nothing", () => {
  const unread = { bytes: 500 };
  const { reads, endTurn } = waiting(unread);
  const continued: number[] = [];
  for (const caller of [1, 2, 3]) {
    reads.add(ann, () => {
      continued.push(caller);
      if (caller === 1) unread.bytes = 500;
    });
  }
  endTurn();
  unread.bytes = 0;
  reads.receiveDrained(ann);
  reads.receiveDrained(ann);
  expect(continued).toEqual([1]);
  unread.bytes = 0;
  reads.receiveDrained(ann);
  expect(continued).toEqual([1, 2]);
  reads.look();
  expect(continued).toEqual([1, 2, 3]);
});

test("[ARD3] no caller continues after its connection has closed", () => {
  const { open, reads, endTurn } = waiting({ bytes: 0 });
  const continued: string[] = [];
  reads.add(ann, () => continued.push("before"));
  open.delete(ann);
  reads.forget(ann);
  reads.add(ann, () => continued.push("after"));
  endTurn();
  reads.look();
  expect(continued).toEqual([]);
});
