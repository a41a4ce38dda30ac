import { expect, test } from "vitest";

import { ReceivedEdits } from "./received-edits.ts";

/** Keystrokes of the writers 0 and 1, which have the Yjs client ids 1 and 2. */
const ann = (counter: number, count = 1) => ({ writer: 1, counter, count });
const bob = (counter: number) => ({ writer: 2, counter, count: 1 });

test("edits in order pass, with and without seqs", () => {
  const [seqs, none] = [new ReceivedEdits("a member"), new ReceivedEdits("a member")];
  seqs.receive(1, [ann(1), bob(1)]);
  expect(seqs.receiveAck(3, ann(2, 3))).toBe(true);
  expect([seqs.seq, seqs.counterOf(0), seqs.counterOf(1)]).toEqual([5, 4, 1]);
  none.receive(0, [ann(1, 2), bob(1)]);
  none.receive(0, [ann(3)]);
  expect([none.seq, none.counterOf(0)]).toEqual([0, 3]);
});

test("a repeated ack is no repeated edit", () => {
  const edits = new ReceivedEdits("a member");
  edits.receiveAck(1, ann(1, 2));
  edits.receive(3, [bob(1)]);
  expect(edits.receiveAck(2, ann(2))).toBe(false);
  expect(edits.receiveAck(4, ann(3))).toBe(true);
  expect([edits.seq, edits.counterOf(0)]).toEqual([4, 3]);
});

test("an edit that is left out, repeated or out of order is reported", () => {
  const received = () => {
    const edits = new ReceivedEdits("a member");
    edits.receive(1, [ann(1), bob(1)]);
    return edits;
  };
  expect(() => received().receive(4, [ann(2)])).toThrow("seq 4 after 2");
  expect(() => received().receive(2, [bob(1)])).toThrow("seq 2 after 2");
  expect(() => received().receive(3, [ann(3)])).toThrow("edit 3 of writer 0 instead of 2");
  expect(() => received().receiveAck(4, ann(2))).toThrow("seq 4 after 2");
  expect(() => received().receiveAck(3, ann(1))).toThrow("edit 1 of writer 0 instead of 2");
});
