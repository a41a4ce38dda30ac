import { expect, test } from "vitest";
import * as Y from "yjs";

import { type Carets, caretsOf } from "./carets.ts";
import { caretOf } from "./person.ts";

const CURSOR = { anchor: {}, head: {} };

function shown(states: Record<number, object>): [number, { cursor?: unknown; user?: unknown }][] {
  const awareness: Carets = { doc: new Y.Doc(), getStates: () => new Map(Object.entries(states).map(([id, state]) => [Number(id), state])), getLocalState: () => ({}), setLocalStateField: () => {}, on: () => {}, off: () => {} };
  return [...caretsOf(awareness).getStates()];
}

test("[PAGE26] a caret's colour is that of its name, whatever its client says", () => {
  const user = { name: "Ada", color: "red; background: url(https://tracker.example/x)", colorLight: "url(https://tracker.example/y)" };
  expect(shown({ 1: { cursor: CURSOR, user, more: 1 } })).toEqual([[1, { cursor: CURSOR, user: caretOf("Ada") }]]);
  expect(caretOf("Ada").color).toMatch(/^#[0-9a-f]{6}$/);
});

test("[PAGE26] one whose name is none is somebody, and who has no caret is not shown", () => {
  expect(shown({ 1: { cursor: CURSOR, user: { name: 7 } }, 2: { cursor: CURSOR }, 3: { user: { name: "Ada" } }, 4: { cursor: null }, 5: { cursor: "there" } })).toEqual([[1, { cursor: CURSOR, user: caretOf("Somebody") }], [2, { cursor: CURSOR, user: caretOf("Somebody") }]]);
});
