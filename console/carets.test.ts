import { expect, test } from "vitest";
import * as Y from "yjs";

import { type CaretAwareness, caretsOf } from "./carets.ts";
import { caretOf } from "./person.ts";

const CURSOR = { anchor: { item: { client: 1, clock: 0 } }, head: { type: null, tname: "text", item: null, assoc: 0 } };

function docWithText(): Y.Doc {
  const doc = new Y.Doc();
  doc.clientID = 1;
  doc.getText("text").insert(0, "Hello");
  return doc;
}

function shown(states: Record<number, object>): [number, { cursor?: unknown; user?: unknown }][] {
  const doc = docWithText();
  const awareness: CaretAwareness = {
    doc,
    getStates: () => new Map(Object.entries(states).map(([id, state]) => [Number(id), state])),
    getLocalState: () => ({}),
    setLocalStateField: () => {},
    on: () => {},
    off: () => {},
  };
  return [...caretsOf(awareness, doc.getText("text"), () => {}).getStates()];
}

test("[PAGE26] a caret has the colour of its name, and ignores the colour that its client sends", () => {
  const user = { name: "Ada", color: "red; background: url(https://tracker.example/x)", colorLight: "url(https://tracker.example/y)" };
  expect(shown({ 1: { cursor: CURSOR, user, more: 1 } })).toEqual([[1, { cursor: CURSOR, user: caretOf("Ada", 1) }]]);
  expect(caretOf("Ada").color).toMatch(/^#[0-9a-f]{6}$/);
});

test("[PAGE26] a caret without a valid name gets a placeholder name, and a client without a caret is not shown", () => {
  expect(
    shown({
      1: { cursor: CURSOR, user: { name: 7 } },
      2: { cursor: CURSOR },
      3: { user: { name: "Ada" } },
      4: { cursor: null },
      5: { cursor: "there" },
    }),
  ).toEqual([
    [1, { cursor: CURSOR, user: caretOf("Somebody", 1) }],
    [2, { cursor: CURSOR, user: caretOf("Somebody", 2) }],
  ]);
});

test("[PAGE30] a caret with an invalid Yjs position is hidden; a caret with a valid position in a shared text is shown", () => {
  const doc = docWithText();
  const places = [
    "there",
    7,
    null,
    {},
    { item: "a" },
    { item: { client: 1, clock: -1 } },
    { tname: 7 },
    { tname: "another" },
    { type: { client: 1, clock: 0 } },
  ];
  for (const place of places) {
    expect(shown({ 1: { cursor: { anchor: place, head: place } } }), JSON.stringify(place)).toEqual([]);
    expect(shown({ 1: { cursor: { ...CURSOR, head: place } } }), JSON.stringify(place)).toEqual([]);
  }
  for (const [index, assoc] of [
    [0, 0],
    [2, -1],
    [5, 0],
    [5, -1],
  ] as const) {
    const place: unknown = JSON.parse(JSON.stringify(Y.createRelativePositionFromTypeIndex(doc.getText("text"), index, assoc)));
    expect(shown({ 1: { cursor: { anchor: place, head: place } } })).toHaveLength(1);
  }
});

test("[PAGE47] a caret moves with its author's edit, and then to the place that the author announces", () => {
  const [ada, grace] = [new Y.Doc(), new Y.Doc()];
  const text = grace.getText("text");
  ada.getText("text").insert(0, "Hello");
  const caretAt = (index: number) => {
    const place: unknown = JSON.parse(JSON.stringify(Y.createRelativePositionFromTypeIndex(ada.getText("text"), index, -1)));
    return { cursor: { anchor: place, head: place }, user: { name: "Ada" } };
  };
  const states = new Map<number, Record<string, unknown>>();
  const carets = caretsOf(
    { doc: grace, getStates: () => states, getLocalState: () => ({}), setLocalStateField: () => {}, on: () => {}, off: () => {} },
    text,
    (name) => moves.push(name),
  );
  const moves: string[] = [];
  const shownAt = (): number | undefined => {
    const { cursor } = carets.getStates().get(ada.clientID) as { cursor: { head: Y.RelativePosition } };
    return Y.createAbsolutePositionFromRelativePosition(cursor.head, grace)?.index;
  };
  const sync = (): void => Y.applyUpdate(grace, Y.encodeStateAsUpdate(ada));

  sync();
  states.set(ada.clientID, caretAt(5));
  expect(shownAt()).toBe(5);
  ada.getText("text").insert(5, ", Grace");
  sync();
  expect(shownAt()).toBe(12); // Ada's presence has not arrived yet.
  expect(moves).toEqual(["Ada"]);
  grace.getText("text").insert(0, "> ");
  expect(shownAt()).toBe(14); // Another person's edit does not take the caret.
  expect(moves).toEqual(["Ada"]);
  states.set(ada.clientID, caretAt(12));
  expect(shownAt()).toBe(14);
  states.set(ada.clientID, caretAt(1));
  expect(shownAt()).toBe(3);
});
