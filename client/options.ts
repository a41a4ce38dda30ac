/** What an application gives to a constructor, or to `send`: from JavaScript anything may come, and is to be told what was meant. */

import { assert } from "../shared/assert.ts";

/** `needed`: what they hold at least, in words. */
export function assertOptions(options: unknown, needed: string): void {
  assert(typeof options === "object" && options !== null, `options are missing: give an object with ${needed}`);
}

/** By what is used of it: of another copy of Yjs it is none of the class known here. */
export function assertDoc(doc: unknown): void {
  const { store, on, transact } = (doc ?? {}) as Record<string, unknown>;
  assert(
    typeof store === "object" && typeof on === "function" && typeof transact === "function",
    '`doc` must be a Y.Doc: const doc = new Y.Doc(), with `import * as Y from "yjs"`',
  );
}

/** A room has one server: given by what is its own, or by what it shares. */
export function assertReach({ url, connection }: { readonly url?: unknown; readonly connection?: unknown }): void {
  if (connection === undefined)
    return assert(url !== undefined, "give `url` and `token`, or a `connection` that is shared with other rooms");
  const { enter, join } = (connection ?? {}) as Record<string, unknown>;
  assert(typeof enter === "function" && typeof join === "function", "`connection` must be a CoroomConnection");
}

/** With room for none, nothing would ever be sent. */
export function assertInFlight(editsMax: unknown): void {
  assert(
    editsMax === undefined || (Number.isSafeInteger(editsMax) && Number(editsMax) > 0),
    "`inFlightEditsMax` is how many edits may wait for their acknowledgement, a whole number from 1",
  );
}

export function assertStore(store: unknown): void {
  const { open } = (store ?? {}) as Record<string, unknown>;
  assert(
    store === undefined || typeof open === "function",
    "`store` must have `open()`: indexedDbStore({ owner }) of @coroom/client/indexeddb, or one of your own",
  );
}

/** By what it calls itself: one of another frame, or of a test's page, is none of the class known here. */
export function assertBytes(payload: unknown): void {
  const { [Symbol.toStringTag]: type } = (payload ?? {}) as Record<symbol, unknown>;
  assert(type === "Uint8Array", "`payload` must be a Uint8Array; of a text: new TextEncoder().encode(text)");
}
