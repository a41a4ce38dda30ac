import { expect, test } from "vitest";

import { HeldBodies, type ReadBody } from "./held-bodies.ts";

/** A single request. The test decides when its body arrives and when its route answers. */
function request(held: HeldBodies, bytesMax = 1_000) {
  const gone = new AbortController();
  const reads: ReadBody[] = [];
  let answered!: () => void;
  const answer = new Promise<void>((resolve) => (answered = resolve));
  let receive: (chunk: ArrayBuffer, isLast: boolean) => void = () => {};
  let isCut = false;
  const res = { onData: (handler: typeof receive) => void (receive = handler), close: () => ((isCut = true), gone.abort()) };
  held.read(res as never, bytesMax, gone.signal, (read) => (reads.push(read), answer));
  return {
    reads,
    isCut: () => isCut,
    receive: (bytes: number, isLast = false) => receive(new ArrayBuffer(bytes), isLast),
    leave: () => gone.abort(),
    answer: async () => {
      answered();
      for (let turn = 0; turn < 6; turn++) await undefined;
    },
  };
}

function heldBodies(bodiesBytesMax = 1_000): { held: HeldBodies; full: () => number; tooLarge: () => number } {
  let [full, tooLarge] = [0, 0];
  const held = new HeldBodies({ bodiesBytesMax, onBodiesFull: () => (full += 1), onBodyTooLarge: () => (tooLarge += 1) });
  return { held, full: () => full, tooLarge: () => tooLarge };
}

test("[HBO1] a body counts from its first bytes until its route has answered", async () => {
  const { held } = heldBodies();
  const one = request(held);
  one.receive(300);
  one.receive(200, true);
  expect([one.reads.map(({ kind }) => kind), held.bytes]).toEqual([["read"], 500]);
  await one.answer();
  expect(held.bytes).toBe(0);
});

test("[HBO1] the bytes of a client that disconnects are released, once", async () => {
  const { held } = heldBodies();
  const [early, late] = [request(held), request(held)];
  early.receive(300);
  early.leave();
  expect(held.bytes).toBe(0);
  late.receive(300, true);
  late.leave(); // The route still holds the body.
  expect(held.bytes).toBe(300);
  await late.answer();
  expect(held.bytes).toBe(0);
});

test("[HBO2] a request above the total is refused, and its bytes are released", () => {
  const { held, full } = heldBodies();
  const [complete, other, third] = [request(held), request(held), request(held)];
  complete.receive(600, true); // The route holds the body.
  other.receive(300);
  other.receive(300);
  other.receive(300, true); // The client continues to send.
  expect([other.reads, full(), held.bytes]).toEqual([[{ kind: "full" }], 1, 600]);
  third.receive(400, true);
  expect(third.reads.map(({ kind }) => kind)).toEqual(["read"]);
});

test("[HBO3] a body that is too large by itself is refused and counted once, and holds nothing", () => {
  const { held, full, tooLarge } = heldBodies();
  const one = request(held, 500);
  one.receive(300);
  one.receive(300);
  one.receive(300, true); // The client continues to send.
  expect([one.reads, full(), tooLarge(), held.bytes]).toEqual([[{ kind: "too-large" }], 0, 1, 0]);
});

test("[HBO4] the request that has been sending the longest is refused in favour of one that completes", () => {
  const { held, full } = heldBodies();
  const [first, second, honest] = [request(held), request(held), request(held)];
  first.receive(500);
  second.receive(500);
  honest.receive(200, true);
  expect([first.reads, second.reads, honest.reads.map(({ kind }) => kind)]).toEqual([[{ kind: "full" }], [], ["read"]]);
  expect([full(), held.bytes]).toEqual([1, 700]);
  first.receive(500, true); // The client continues to send.
  expect([first.reads.length, held.bytes]).toEqual([1, 700]);
});

test("[HBO5] a client whose body comes in too many small pieces is cut and counted, and holds nothing", async () => {
  const { held, tooLarge } = heldBodies(100_000);
  const [tiny, small] = [request(held, 100_000), request(held, 100_000)];
  for (let piece = 0; piece < 1_500 && !tiny.isCut(); piece++) tiny.receive(1);
  expect([tiny.isCut(), tiny.reads, tooLarge(), held.bytes]).toEqual([true, [], 1, 0]);
  for (let piece = 0; piece < 1_500; piece++) small.receive(64, piece === 1_499);
  expect([small.isCut(), small.reads.map((read) => read.kind === "read" && read.body.byteLength)]).toEqual([false, [96_000]]);
});

test("[HBO6] a body in pieces is the same bytes in the same order", () => {
  const { held } = heldBodies();
  const reads: ReadBody[] = [];
  let receive!: (chunk: ArrayBuffer, isLast: boolean) => void;
  const res = { onData: (handler: typeof receive) => void (receive = handler), close: () => {} };
  held.read(res as never, 100, new AbortController().signal, async (read) => void reads.push(read));
  const pieces = [[1], [2, 3], [], [4, 5, 6, 7, 8, 9], [10]];
  for (const [index, piece] of pieces.entries()) receive(new Uint8Array(piece).buffer, index === pieces.length - 1);
  expect(reads).toEqual([{ kind: "read", body: new Uint8Array(pieces.flat()) }]);
});
