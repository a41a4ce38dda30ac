/**
 * Everybody's carets as the editor is shown them: where each is, with a name and colour of the page's own making. What
 * another client gives as its colour goes nowhere, for the editor writes it into the page's styles as it is.
 */

import type { RoomAwareness } from "@coroom/client";

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
      const shown = [...awareness.getStates()].filter(([, { cursor }]) => typeof cursor === "object" && cursor !== null);
      return new Map(shown.map(([client, { cursor, user }]) => [client, { cursor, user: caretOf(nameIn(user) ?? NAMELESS) }]));
    },
    getLocalState: () => awareness.getLocalState(),
    setLocalStateField: (field, value) => awareness.setLocalStateField(field, value),
    on: (name, listener) => void awareness.on(name, listener),
    off: (name, listener) => awareness.off(name, listener),
  };
}
