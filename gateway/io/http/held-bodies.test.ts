import { expect, test } from "vitest";

import { HeldBodies, type ReadBody } from "./held-bodies.ts";

/** One request, whose body comes as the test says, and whose route answers when it says so. */
function request(held: HeldBodies, bytesMax = 1_000) {
  const gone = new AbortController();
  const reads: ReadBody[] = [];
  let answered!: () => void;
  const answer = new Promise<void>((resolve) => (answered = resolve));
  let receive: (chunk: ArrayBuffer, isLast: boolean) => void = () => {};
  const res = { onData: (handler: typeof receive) => void (receive = handler) };
  held.read(res as never, bytesMax, gone.signal, (read) => (reads.push(read), answer));
  return {
    reads,
    come: (bytes: number, isLast = false) => receive(new ArrayBuffer(bytes), isLast),
    leave: () => gone.abort(),
    answer: async () => {
      answered();
      for (let turn = 0; turn < 6; turn++) await undefined;
    },
  };
}

function heldBodies(bodiesBytesMax = 1_000): { held: HeldBodies; full: () => number } {
  let full = 0;
  return { held: new HeldBodies({ bodiesBytesMax, onBodiesFull: () => (full += 1) }), full: () => full };
}

test("[HBO1] a body counts from its first bytes until its route has answered", async () => {
  const { held } = heldBodies();
  const one = request(held);
  one.come(300);
  one.come(200, true);
  expect([one.reads.map(({ kind }) => kind), held.bytes]).toEqual([["read"], 500]);
  await one.answer();
  expect(held.bytes).toBe(0);
});

test("[HBO1] the bytes of a client that disconnects are released, once", async () => {
  const { held } = heldBodies();
  const [early, late] = [request(held), request(held)];
  early.come(300);
  early.leave();
  expect(held.bytes).toBe(0);
  late.come(300, true);
  late.leave(); // Its route has the body still.
  expect(held.bytes).toBe(300);
  await late.answer();
  expect(held.bytes).toBe(0);
});

test("[HBO2] a request above the total is refused, and its bytes are released", () => {
  const { held, full } = heldBodies();
  const [whole, other, third] = [request(held), request(held), request(held)];
  whole.come(600, true); // Its route has it.
  other.come(300);
  other.come(300);
  other.come(300, true); // It comes on.
  expect([other.reads, full(), held.bytes]).toEqual([[{ kind: "full" }], 1, 600]);
  third.come(400, true);
  expect(third.reads.map(({ kind }) => kind)).toEqual(["read"]);
});

test("[HBO3] a body that is too large by itself is refused, and holds nothing", () => {
  const { held, full } = heldBodies();
  const one = request(held, 500);
  one.come(300);
  one.come(300);
  expect([one.reads, full(), held.bytes]).toEqual([[{ kind: "too-large" }], 0, 0]);
});

test("[HBO4] the request that has been sending the longest is refused for one that completes soon", () => {
  const { held, full } = heldBodies();
  const [first, second, honest] = [request(held), request(held), request(held)];
  first.come(500);
  second.come(500);
  honest.come(200, true);
  expect([first.reads, second.reads, honest.reads.map(({ kind }) => kind)]).toEqual([[{ kind: "full" }], [], ["read"]]);
  expect([full(), held.bytes]).toEqual([1, 700]);
  first.come(500, true); // It comes on.
  expect([first.reads.length, held.bytes]).toEqual([1, 700]);
});
