import { expect, test } from "vitest";
import * as Y from "yjs";

import { Shapes } from "./shapes.ts";

/** Two people whose documents synchronise when `meet` is called. */
function two(): { ann: Shapes; bob: Shapes; meet: () => void; doc: Y.Doc } {
  const [a, b] = [new Y.Doc(), new Y.Doc()];
  const meet = (): void => {
    Y.applyUpdate(b, Y.encodeStateAsUpdate(a), "room");
    Y.applyUpdate(a, Y.encodeStateAsUpdate(b), "room");
  };
  return { ann: new Shapes(a), bob: new Shapes(b), meet, doc: a };
}

test("[CAN3] a new shape has its middle at the given point, above all other shapes", () => {
  const { ann } = two();
  ann.add("a", "note", { x: 0, y: 0 }, 3);
  ann.add("b", "ellipse", { x: 100.4, y: 50 }, 1);
  expect(ann.all()).toEqual([
    { id: "a", kind: "note", x: -90, y: -66, width: 180, height: 132, colour: 3, text: "", level: 1 },
    { id: "b", kind: "ellipse", x: 20, y: -10, width: 160, height: 120, colour: 1, text: "", level: 2 },
  ]);
});

test("[CAN4] when two people drag one shape at once, one position wins completely, and other changes to the shape stay", () => {
  const { ann, bob, meet } = two();
  ann.add("a", "note", { x: 0, y: 0 }, 0);
  meet();
  ann.move("a", { x: 10, y: 10 });
  bob.move("a", { x: 500, y: 500 });
  bob.write("a", "ours");
  meet();
  expect(ann.all()).toEqual(bob.all());
  const [{ x, y, text }] = ann.all() as [ReturnType<Shapes["all"]>[number]];
  expect([[10, 500].includes(x), x === y, text]).toEqual([true, true, "ours"]);
});

test("[CAN4] a removed shape cannot be moved and stays removed", () => {
  const { ann, bob, meet } = two();
  ann.add("a", "rectangle", { x: 0, y: 0 }, 0);
  meet();
  ann.remove("a");
  bob.move("a", { x: 1, y: 1 });
  meet();
  ann.move("a", { x: 2, y: 2 });
  expect([ann.all(), bob.all()]).toEqual([[], []]);
});

test("[CAN5] other content of the document is not shown, and positions are limited", () => {
  const { ann, doc } = two();
  const shapes = doc.getMap("shapes");
  shapes.set("text", "none");
  shapes.set("unknown", new Y.Map(Object.entries({ kind: "volcano", place: { x: 0, y: 0 } })));
  shapes.set("nowhere", new Y.Map(Object.entries({ kind: "note", place: { x: "a", y: 0 } })));
  shapes.set("far", new Y.Map(Object.entries({ kind: "note", place: { x: 1e300, y: 0 } })));
  shapes.set("odd", new Y.Map(Object.entries({ kind: "note", place: { x: 1, y: 0 }, colour: "red", level: {}, text: 7 })));
  expect(ann.all()).toMatchObject([{ id: "odd", colour: 0, level: 0, text: "" }]);
  ann.move("odd", { x: 1e300, y: -1e300 });
  expect(ann.all()).toMatchObject([{ x: 1_000_000, y: -1_000_000 }]);
});

test("[CAN7] undo and redo affect only this person's last change", () => {
  const { ann, bob, meet } = two();
  ann.add("a", "note", { x: 0, y: 0 }, 0);
  ann.write("a", "Call the printers");
  meet();
  bob.add("b", "ellipse", { x: 0, y: 0 }, 1);
  meet();
  ann.remove("a");
  ann.undo();
  meet();
  expect(bob.all().map(({ id, text }) => [id, text])).toEqual([
    ["a", "Call the printers"],
    ["b", ""],
  ]);
  ann.undo();
  expect(ann.all().map(({ id, text }) => [id, text])).toEqual([
    ["a", ""],
    ["b", ""],
  ]);
  ann.redo();
  expect(ann.all().map(({ text }) => text)).toEqual(["Call the printers", ""]);
  for (let more = 0; more < 5; more++) ann.undo();
  expect(ann.all().map(({ id }) => id)).toEqual(["b"]);
});

test("[CAN7] undo reverts consecutive moves of one shape together, and moves of another shape separately", () => {
  const { ann } = two();
  ann.add("a", "note", { x: 90, y: 66 }, 0);
  ann.add("b", "note", { x: 90, y: 66 }, 0);
  for (const x of [10, 20, 30]) ann.move("a", { x, y: 0 });
  for (const x of [10, 20]) ann.move("b", { x, y: 0 });
  const places = () => Object.fromEntries(ann.all().map(({ id, x }) => [id, x]));
  ann.undo();
  expect(places()).toEqual({ a: 30, b: 0 });
  ann.undo();
  expect(places()).toEqual({ a: 0, b: 0 });
});
