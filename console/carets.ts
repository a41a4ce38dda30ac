/**
 * Filters the carets of other clients before the editor shows them, and gives them the page's own names and colours.
 * The editor copies a client's colour into the styles of the page, so that colour must never pass. An invalid caret
 * must not pass either: it would stop the editor from showing any caret.
 *
 * A caret moves with its author's edit: presence arrives later than the edit, so after an insertion the caret stands
 * behind the inserted text until its client announces another position.
 */

import type { RoomAwareness } from "@coroom/client";
import * as Y from "yjs";

import { NAMELESS, nameIn } from "./people.ts";
import { caretOf } from "./person.ts";

/** The part of an awareness that y-codemirror.next uses. */
export type CaretAwareness = Pick<RoomAwareness, "doc" | "getStates" | "getLocalState" | "setLocalStateField"> & {
  on(name: string, listener: (...args: unknown[]) => void): void;
  off(name: string, listener: (...args: unknown[]) => void): void;
};

/**
 * Create the carets before the editor's own observer of `text`, so that the editor draws them at their new places.
 * `moved`: called with the name of each caret that moves by itself, and not because others type before it.
 */
export function caretsOf(awareness: CaretAwareness, text: Y.Text, moved: (name: string) => void): CaretAwareness {
  const announced = new Map<number, unknown>();
  awareness.on("change", () => {
    const states = awareness.getStates();
    for (const [client, { cursor, user }] of states) {
      if (isSamePlace(announced.get(client), cursor)) continue;
      announced.set(client, cursor);
      moved(nameIn(user) ?? NAMELESS);
    }
    for (const client of announced.keys()) if (!states.has(client)) announced.delete(client);
  });
  const inserted = new Map<number, { readonly announced: unknown; readonly cursor: { anchor: unknown; head: unknown } }>();
  text.observe((_, transaction) => {
    const states = awareness.getStates();
    for (const [client, end] of insertionEnds(text, transaction)) {
      const state = states.get(client);
      if (state === undefined) continue;
      inserted.set(client, { announced: state["cursor"], cursor: { anchor: end, head: end } });
      moved(nameIn(state["user"]) ?? NAMELESS);
    }
    for (const client of inserted.keys()) if (!states.has(client)) inserted.delete(client);
  });
  const cursorOf = (client: number, announced: unknown): unknown => {
    const place = inserted.get(client);
    return place !== undefined && isSamePlace(place.announced, announced) ? place.cursor : announced;
  };
  return {
    doc: awareness.doc,
    getStates: () => {
      const shown = [...awareness.getStates()].filter(([, { cursor }]) => isCaret(cursor, awareness.doc));
      return new Map(
        shown.map(([client, { cursor, user }]) => [
          client,
          { cursor: cursorOf(client, cursor), user: caretOf(nameIn(user) ?? NAMELESS, client) },
        ]),
      );
    },
    getLocalState: () => awareness.getLocalState(),
    setLocalStateField: (field, value) => awareness.setLocalStateField(field, value),
    on: (name, listener) => void awareness.on(name, listener),
    off: (name, listener) => awareness.off(name, listener),
  };
}

/** The position behind the last character that each other client inserted with the transaction. */
function insertionEnds(text: Y.Text, { local, beforeState, afterState, doc }: Y.Transaction): [number, Y.RelativePosition][] {
  if (local) return [];
  return [...afterState].flatMap(([client, clock]): [number, Y.RelativePosition][] => {
    if (clock === (beforeState.get(client) ?? 0)) return [];
    const last = Y.getItem(doc.store, Y.createID(client, clock - 1));
    if (!(last instanceof Y.Item) || last.deleted || last.parent !== text) return [];
    return [[client, new Y.RelativePosition(null, null, Y.createID(client, clock - 1), -1)]];
  });
}

/** Compares the announced positions by value: each announcement creates new objects. */
function isSamePlace(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function isCaret(cursor: unknown, doc: Y.Doc): boolean {
  return (
    typeof cursor === "object" &&
    cursor !== null &&
    "anchor" in cursor &&
    "head" in cursor &&
    isPlace(cursor.anchor, doc) &&
    isPlace(cursor.head, doc)
  );
}

/**
 * Accepts the two kinds of Yjs positions: after a character, or in a shared text of the document. Yjs throws on most
 * other values.
 */
function isPlace(place: unknown, { share }: Y.Doc): boolean {
  if (typeof place !== "object" || place === null) return false;
  const { type, tname, item } = place as Partial<Record<string, unknown>>;
  if ((type ?? null) !== null) return false;
  return (item ?? null) === null ? typeof tname === "string" && share.has(tname) : isCharacter(item);
}

function isCharacter(item: unknown): boolean {
  return (
    typeof item === "object" &&
    item !== null &&
    "client" in item &&
    "clock" in item &&
    [item.client, item.clock].every((part) => Number.isSafeInteger(part) && (part as number) >= 0)
  );
}
