/**
 * Everybody's carets as the editor is shown them: where each is, with a name and colour of the page's own making. What
 * another client gives as its colour goes nowhere, for the editor writes it into the page's styles as it is; nor does a
 * caret that is none, for the editor would show nobody's any more.
 */

import type { RoomAwareness } from "@coroom/client";
import type * as Y from "yjs";

import { NAMELESS, nameIn } from "./people.ts";
import { caretOf } from "./person.ts";

/** What y-codemirror.next asks of an awareness. */
export type Carets = Pick<RoomAwareness, "doc" | "getStates" | "getLocalState" | "setLocalStateField"> & {
  on(name: string, listener: (...told: unknown[]) => void): void;
  off(name: string, listener: (...told: unknown[]) => void): void;
};

export function caretsOf(awareness: Carets): Carets {
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

/** Behind a character, or in a text of the document's own, as Yjs says both. It throws on much else. */
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
