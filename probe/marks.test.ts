import { expect, test } from "vitest";
import * as Y from "yjs";

import { MarkWriter, markOf } from "./marks.ts";

test("[PMK1] an edit names its number and its probe", () => {
  const writer = new MarkWriter("0", "run-1_A", 5);
  expect([writer.write(1), writer.write(27)].map(markOf)).toEqual([
    { run: "run-1_A", number: 1 },
    { run: "run-1_A", number: 27 },
  ]);
});

test("[PMK2] edits of other writers have no mark", () => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "run:seven");
  expect(
    [
      Y.encodeStateAsUpdate(doc),
      Y.encodeStateAsUpdate(new Y.Doc()),
      new Uint8Array(),
      new Uint8Array([255, 255, 255]),
      new Uint8Array([0, 0, 1]),
    ].map(markOf),
  ).toEqual(Array(5).fill(undefined));
});

test("[PMK3] a room's document does not grow with its edits, and little with each start of a probe", () => {
  const room = new Y.Doc();
  const sizes: number[] = [];
  for (let start = 1; start <= 20; start++) {
    const writers = [0, 1].map((key) => new MarkWriter(String(key), `run-${start}`, start * 1_000 + key));
    for (let number = 1; number <= 100; number++) for (const writer of writers) Y.applyUpdate(room, writer.write(number));
    sizes.push(Y.encodeStateAsUpdate(room).byteLength);
  }
  expect(sizes[0]).toBeLessThan(200);
  expect(sizes.at(-1)! / sizes.length).toBeLessThan(100);
});

test("[PMK4] a client that has only some of the edits can apply them", () => {
  const writer = new MarkWriter("0", "run", 5);
  const updates = [1, 2, 3].map((number) => writer.write(number));
  const late = new Y.Doc();
  for (const update of updates) Y.applyUpdate(late, update);
  expect(late.getMap("probe").get("0")).toBe("run:3");
});
