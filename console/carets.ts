/**
 * Filters the carets of other clients before the editor shows them, and gives them the page's own names and colours.
 * The editor copies a client's colour into the styles of the page, so that colour must never pass. An invalid caret
 * must not pass either: it would stop the editor from showing any caret.
 */

import type { RoomAwareness } from "@coroom/client";
import type * as Y from "yjs";

import { NAMELESS, nameIn } from "./people.ts";
import { caretOf } from "./person.ts";

/** The part of an awareness that y-codemirror.next uses. */
export type CaretAwareness = Pick<RoomAwareness, "doc" | "getStates" | "getLocalState" | "setLocalStateField"> & {
  on(name: string, listener: (...args: unknown[]) => void): void;
  off(name: string, listener: (...args: unknown[]) => void): void;
};

export function caretsOf(awareness: CaretAwareness): CaretAwareness {
  return {
    doc: awareness.doc,
    getStates: () => {
      const shown = [...awareness.getStates()].filter(([, { cursor }]) => isCaret(cursor, awareness.doc));
      return new Map(shown.map(([client, { cursor, user }]) => [client, { cursor, user: caretOf(nameIn(user) ?? NAMELESS) }]));
    },
    getLocalState: () => awareness.getLocalState(),
    setLocalStateField: (field, value) => awareness.setLocalStateField(field, value),
    on: (name, listener) => void awareness.on(name, listener),
    off: (name, listener) => awareness.off(name, listener),
  };
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
