/**
 * The database of a store in browsers: what is in it, how it is opened, and that what is asked of it happens whole or not
 * at all. Browsers close one that is in use: when its site's data is cleared, or a phone sends its page to sleep. It is
 * opened again then. Where another page takes it away it is not: who signed out there leaves nothing here.
 */

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

export type Head = {
  readonly room: string;
  readonly position: Position;
  readonly last: EditName | undefined;
  /** Of the last piece. */
  readonly place: number;
  /** Of the pieces behind the first. */
  readonly bytes: number;
  readonly condensedBytes: number;
};
type Stores = ["heads", "pieces", "edits"];
export type Reading = IDBPTransaction<Schema, Stores, "readonly" | "readwrite">;
export type Writing = IDBPTransaction<Schema, Stores, "readwrite">;

/** Together less than a write may take. */
const REOPEN_TRIES = 4;
const REOPEN_MS = 500;

export const ALL = ["heads", "pieces", "edits"] as const;

/** As one room has it open. */
export class KeptDatabase {
  readonly #name: string;
  readonly #lost: () => void;
  #connection: IDBPDatabase<Schema> | undefined;
  /** The browser has closed it at least once. */
  #isCutOff = false;
  /** Another page has taken it away. */
  #isTaken = false;
  #isClosed = false;

  /** `lost`: what was kept may be gone. */
  private constructor(name: string, lost: () => void) {
    this.#name = name;
    this.#lost = lost;
  }

  static async open(name: string, lost: () => void): Promise<KeptDatabase> {
    const database = new KeptDatabase(name, lost);
    await database.connection();
    return database;
  }

  /** Asked again only once the last is answered. */
  async connection(): Promise<IDBPDatabase<Schema>> {
    if (this.#isTaken) {
      throw new Error("another page of this application has removed what was kept here, or is of a later version: load the page again");
    }
    this.#connection ??= await this.#open();
    if (this.#isClosed) this.close();
    return this.#connection;
  }

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }

  /** Cut off, it may be that the browser is still clearing it away. */
  async #open(): Promise<IDBPDatabase<Schema>> {
    for (let triesLeft = this.#isCutOff ? REOPEN_TRIES : 0; ; triesLeft -= 1) {
      try {
        return await openDatabase(this.#name, { taken: () => this.#receiveTaken(), cutOff: () => this.#receiveCutOff() });
      } catch (cause) {
        if (triesLeft === 0) throw cause; // However it failed.
        await new Promise((resolve) => setTimeout(resolve, REOPEN_MS));
      }
    }
  }

  #receiveTaken(): void {
    this.#isTaken = true;
    this.#connection?.close();
    this.#lost();
  }

  #receiveCutOff(): void {
    this.#connection = undefined;
    this.#isCutOff = true;
    this.#lost();
  }
}

async function openDatabase(name: string, { taken, cutOff }: { taken: () => void; cutOff: () => void }): Promise<IDBPDatabase<Schema>> {
  try {
    return await openDB<Schema>(name, SCHEMA_VERSION, {
      upgrade: (opened, from) => {
        if (from >= 1) return;
        opened.createObjectStore("heads", { keyPath: "room" });
        opened.createObjectStore("pieces", { keyPath: ["room", "place"] });
        opened.createObjectStore("edits", { keyPath: ["room", "page", "place"] });
      },
      blocking: taken,
      terminated: cutOff,
    });
  } catch (cause) {
    const isLater = cause instanceof DOMException && cause.name === "VersionError";
    throw new Error(
      isLater
        ? "what is kept here was written by a later version of this application, and is left alone: load the page again"
        : "the browser does not open its database: in private windows some do not",
      { cause },
    );
  }
}

/** All that is asked in it, or nothing. */
export async function whole<Mode extends "readonly" | "readwrite", Result>(
  transaction: IDBPTransaction<Schema, Stores, Mode>,
  run: (transaction: IDBPTransaction<Schema, Stores, Mode>) => Promise<Result>,
): Promise<Result> {
  const done = transaction.done.then(
    () => undefined,
    (cause: unknown) => ({ cause }),
  );
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
