import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";
import * as Y from "yjs";

import {
  conflictBomb,
  deletionBomb,
  HALF_UPDATES,
  NESTING_FUSE,
  nestedConflictBomb,
  nestingBomb,
  valueBomb,
} from "../testing/yjs-bombs.ts";
import { UpdateRefused, withinBounds } from "./bounded-integration.ts";
import { checkUpdate } from "./checked-update.ts";

function edited(change: (doc: Y.Doc) => void): Uint8Array {
  const doc = new Y.Doc();
  change(doc);
  return Y.encodeStateAsUpdate(doc);
}

function itemAt(clock: number): Uint8Array {
  const update = edited((doc) => {
    doc.clientID = 1;
    doc.getText("t").insert(0, "a");
  });
  const atClock = encoding.encode((out) => encoding.writeVarUint(out, clock));
  return Uint8Array.of(...update.slice(0, 3), ...atClock, ...update.slice(4)); // After the numbers of clients and structs, and the client.
}

const lines = (count: number, at: "front" | "end") => (doc: Y.Doc) => {
  const list = doc.getArray("lines");
  for (let line = 0; line < count; line++) list.insert(at === "front" ? 0 : line, [String(line)]);
};

test.each([
  ["a text of one struct", edited((doc) => doc.getText("t").insert(0, "a".repeat(100_000)))],
  ["20,000 inserts at the front of a list", edited(lines(20_000, "front"))],
  ["20,000 inserts at the end of a list", edited(lines(20_000, "end"))],
  ["types 500 deep", nestingBomb(500)],
  ["an item at the last clock", itemAt(Number.MAX_SAFE_INTEGER - 1)],
  ["values 100 deep", valueBomb(100)],
  [
    "every second of 40,000 characters deleted",
    edited((doc) => {
      const text = doc.getText("t");
      text.insert(0, "ab".repeat(20_000));
      doc.transact(() => void Array.from({ length: 20_000 }, (_, index) => text.delete(index, 1)));
    }),
  ],
])("[YCK1] an update from an editor is accepted: %s", (_, update) => {
  expect(checkUpdate(update)).toMatchObject({ kind: "fit" });
});

test.each<readonly [name: string, update: Uint8Array, why: string]>([
  ["bytes of another kind", Uint8Array.of(9, 9, 9, 9), "no Yjs update"],
  ["a truncated update", edited(lines(3, "end")).slice(0, -4), "no Yjs update"],
  ["conflicts of one origin", conflictBomb(1_500), "conflict"],
  ["conflicts of many origins", nestedConflictBomb(1_500), "conflict"],
  ["types 501 deep", nestingBomb(501), "500 deep"],
  ["types 100,000 deep", nestingBomb(100_000), "structs"],
  ["values 600 deep", valueBomb(600), "500 deep"],
  ["30,000 deletions from the end", deletionBomb(30_000), "deletions out of order"],
  ...HALF_UPDATES.map(([name, update]) => [name, update, "half-way"] as const),
  ["an item at clock 2 ** 53", itemAt(2 ** 53), "half-way"],
  ["a client twice", Uint8Array.of(2, 1, 1, 0, 0, 4, 1, 1, 4, 0, 1, 0), "client twice"],
  ["a client without structs", Uint8Array.of(1, 0, 1, 0, 0), "client twice"],
  ["a number of structs that becomes NaN", Uint8Array.of(1, ...Array.from({ length: 150 }, () => 0x80), 0, 1, 0, 0), "client twice"],
])("[YCK2] an update that harms Yjs is refused: %s", (_, update, why) => {
  expect(checkUpdate(update)).toEqual(expect.objectContaining({ kind: "unfit", why: expect.stringContaining(why) }));
});

test("[YCK3] the nesting of the document counts too, and the update is refused before any of it is applied", () => {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, nestingBomb(300));
  const more = nestingBomb(300, 300);
  expect([checkUpdate(more).kind, checkUpdate(more, doc).kind]).toEqual(["fit", "unfit"]);
  Y.applyUpdate(doc, nestingBomb(200, 300));
  expect(checkUpdate(nestingBomb(1, 500), doc).kind).toBe("unfit");
});

test("[YCK4] nesting that becomes complete only with a later update is refused while Yjs integrates it", () => {
  const doc = new Y.Doc();
  const last = nestingBomb(300, 300);
  expect(checkUpdate(last, doc).kind).toBe("fit");
  Y.applyUpdate(doc, last); // Pending: its base is missing.
  const first = nestingBomb(300);
  expect(checkUpdate(first, doc).kind).toBe("fit");
  expect(() => withinBounds(() => Y.applyUpdate(doc, first))).toThrow(UpdateRefused);
  Y.applyUpdate(doc, NESTING_FUSE);
  expect(doc.getMap("root").size).toBe(0);
});

test("[YCK5] conflicts that two updates build together are refused while Yjs integrates the second", () => {
  const bomb = conflictBomb(1_500);
  const [text, inserts] = [
    Y.diffUpdate(bomb, Y.encodeStateVector(new Map([[2, 1_500]]))),
    Y.diffUpdate(bomb, Y.encodeStateVector(new Map([[1, 1_501]]))),
  ];
  const doc = new Y.Doc();
  expect([checkUpdate(text), checkUpdate(inserts)].map(({ kind }) => kind)).toEqual(["fit", "fit"]);
  withinBounds(() => Y.applyUpdate(doc, text));
  expect(() => withinBounds(() => Y.applyUpdate(doc, inserts))).toThrow(UpdateRefused);
});

test("[YCK6] structs that depend on each other do not stop the check", () => {
  const a = new Y.Item(Y.createID(1, 0), null, Y.createID(2, 0), null, null, null, null, new Y.ContentType(new Y.Map()));
  const encoder = new Y.UpdateEncoderV1();
  a.write(encoder, 0);
  const b = new Y.Item(Y.createID(2, 0), null, Y.createID(1, 0), null, null, null, null, new Y.ContentType(new Y.Map()));
  const other = new Y.UpdateEncoderV1();
  b.write(other, 0);
  const update = Uint8Array.of(2, 1, 1, 0, ...encoder.toUint8Array(), 1, 2, 0, ...other.toUint8Array(), 0);
  expect(checkUpdate(update).kind).toBe("fit");
});

test("[YCK7] the ends of an accepted update are the clocks after its last structs", () => {
  const doc = new Y.Doc();
  doc.clientID = 7;
  doc.getText("t").insert(0, "abc");
  expect(checkUpdate(Y.encodeStateAsUpdate(doc))).toEqual({ kind: "fit", ends: new Map([[7, 3]]) });
});

test("[YCK8] the limits apply only during the call that applies updates within them", () => {
  const doc = new Y.Doc();
  expect(() => withinBounds(() => Y.applyUpdate(doc, conflictBomb(1_500)))).toThrow(UpdateRefused);
  const other = new Y.Doc();
  Y.applyUpdate(other, conflictBomb(600));
  expect(other.getText("text").length).toBe(1_201);
});
