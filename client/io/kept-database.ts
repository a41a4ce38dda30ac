/** The database of a store in browsers: what is in it, how it is opened, and that what is asked of it happens whole or not at all. */

import { type DBSchema, type IDBPDatabase, type IDBPTransaction, openDB } from "idb";

import type { Position } from "../../shared/ids.ts";
import type { EditName, KeptEdit } from "../keeping/edit-store.ts";

/** Version 1. A later one adds its step to `upgrade`, and leaves those before it as they are. */
const SCHEMA_VERSION = 1;

export interface Schema extends DBSchema {
  /** A room's document: how far its pieces go. */
  heads: { key: string; value: Head };
  /** In their order. */
  pieces: { key: [string, number]; value: { readonly room: string; readonly place: number; readonly payloads: readonly Uint8Array[] } };
  /** What waits, by page. */
  edits: { key: [string, string, number]; value: KeptEdit & { readonly room: string; readonly page: string } };
}

export type Head = { readonly room: string; readonly position: Position; readonly last: EditName | undefined; /** Of the last piece. */ readonly place: number; /** Of the pieces behind the first. */ readonly bytes: number; readonly condensedBytes: number };
type Stores = ["heads", "pieces", "edits"];
export type Reading = IDBPTransaction<Schema, Stores, "readonly" | "readwrite">;
export type Writing = IDBPTransaction<Schema, Stores, "readwrite">;

export const ALL = ["heads", "pieces", "edits"] as const;

export async function openDatabase(name: string): Promise<IDBPDatabase<Schema>> {
  try {
    const db = await openDB<Schema>(name, SCHEMA_VERSION, {
      upgrade: (opened, from) => {
        if (from >= 1) return;
        opened.createObjectStore("heads", { keyPath: "room" });
        opened.createObjectStore("pieces", { keyPath: ["room", "place"] });
        opened.createObjectStore("edits", { keyPath: ["room", "page", "place"] });
      },
      blocking: () => db.close(), // Another page wants a later version, or all of it gone: writes fail from here on, and say so.
    });
    return db;
  } catch (cause) {
    const isLater = cause instanceof DOMException && cause.name === "VersionError";
    throw new Error(isLater ? "what is kept here was written by a later version of this application, and is left alone: load the page again" : "the browser does not open its database: in private windows some do not", { cause });
  }
}

/** All that is asked in it, or nothing. */
export async function whole<Mode extends "readonly" | "readwrite", Result>(transaction: IDBPTransaction<Schema, Stores, Mode>, run: (transaction: IDBPTransaction<Schema, Stores, Mode>) => Promise<Result>): Promise<Result> {
  const done = transaction.done.then(() => undefined, (cause: unknown) => ({ cause }));
  try {
    const result = await run(transaction);
    const failed = await done;
    if (failed !== undefined) throw failed.cause;
    return result;
  } catch (cause) {
    abort(transaction);
    await done;
    throw cause;
  }
}

function abort(transaction: { abort: () => void }): void {
  try {
    transaction.abort();
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "InvalidStateError")) throw error; // It has ended already.
  }
}
