/**
 * Who has written here, kept in the document itself: each tab that writes adds its name once, under the
 * number by which Yjs knows its writing. It says who wrote, never who is here now: presence is not edits.
 */

import * as Y from "yjs";

export class Authors {
  readonly #names: Y.Map<string>;
  readonly #self: string;

  constructor(doc: Y.Doc) {
    this.#names = doc.getMap("authors");
    this.#self = String(doc.clientID);
  }

  /** Writes only what is not there yet: called at each keystroke, an edit once. */
  introduce(name: string): void {
    if (this.#names.get(this.#self) !== name) this.#names.set(this.#self, name);
  }

  /** A new name for somebody who has written already; nobody else needs an entry. */
  rename(name: string): void {
    if (this.#names.has(this.#self)) this.introduce(name);
  }

  /** Each name once, in the order of the alphabet. */
  names(): readonly string[] {
    return [...new Set([...this.#names.values()].filter((name) => typeof name === "string"))].sort((a, b) => a.localeCompare(b));
  }

  /** Undefined while its entry has not arrived. */
  nameOf(writer: number): string | undefined {
    return this.#names.get(String(writer));
  }

  observe(changed: () => void): void {
    this.#names.observe(changed);
  }
}

/** Who wrote what a transaction brought; undefined where it only deleted, which Yjs keeps without a name. */
export function writerOf({ beforeState, afterState }: Y.Transaction): number | undefined {
  let writer: number | undefined;
  for (const [client, clock] of afterState) if (clock > (beforeState.get(client) ?? 0)) writer = client;
  return writer;
}
