/**
 * The database of a browser's store: its tables, its opening, and transactions that happen completely or not at all. A
 * browser may close an open database when the site's data is cleared or a phone suspends the page. The store then opens
 * it again. When another page removes the database, it stays closed, because the user signed out there.
 */

import { type DBSchema, type IDBPDatabase, type IDBPTransaction, openDB } from "idb";

import type { Position, Seq } from "../../shared/ids.ts";
import type { EditName, KeptEdit, DocumentChange, KeptDocument, StoredRoom } from "../persistence/edit-store.ts";

/** Random id of one page. It names the Web Lock by which other pages see that the page runs. */
export type PageId = string;

/** The first version. A later version adds its step to `upgrade` and leaves earlier steps unchanged. */
const SCHEMA_VERSION = 1;

interface Schema extends DBSchema {
  /** The position up to which the stored pieces of a room's document reach. */
  heads: { key: string; value: Head };
  /** Pieces of documents, in order. */
  pieces: { key: [string, number]; value: { readonly room: string; readonly place: number; readonly payloads: readonly Uint8Array[] } };
  /** Unsent edits, by page. */
  edits: { key: [string, string, number]; value: KeptEdit & { readonly room: string; readonly page: string } };
}

type Head = {
  readonly room: string;
  readonly position: Position;
  readonly last: EditName | undefined;
  /** Place of the last piece. */
  readonly place: number;
  /** Bytes of all pieces after the first. */
  readonly bytes: number;
  readonly condensedBytes: number;
};
type Stores = ["heads", "pieces", "edits"];
type StoreRead = IDBPTransaction<Schema, Stores, "readonly" | "readwrite">;
type StoreWrite = IDBPTransaction<Schema, Stores, "readwrite">;

/** All tries together take less time than a write may take. */
const REOPEN_TRIES = 4;
const REOPEN_MS = 500;

export const ALL = ["heads", "pieces", "edits"] as const;

/** The database from the view of one room. */
export class StoreDatabase {
  readonly #name: string;
  readonly #lost: () => void;
  #connection: IDBPDatabase<Schema> | undefined;
  #opening: Promise<IDBPDatabase<Schema>> | undefined;
  /** The browser has closed the database at least once. */
  #isCutOff = false;
  /** Another page has removed the database. */
  #isTaken = false;
  #isClosed = false;

  /** `lost`: called when stored data may be gone. */
  private constructor(name: string, lost: () => void) {
    this.#name = name;
    this.#lost = lost;
  }

  static async open(name: string, lost: () => void): Promise<StoreDatabase> {
    const database = new StoreDatabase(name, lost);
    await database.connection();
    return database;
  }

  /** At most one opening attempt runs at a time. */
  async connection(): Promise<IDBPDatabase<Schema>> {
    if (this.#isTaken) {
      throw new Error("another page of this application removed the stored data, or has a later version: reload the page");
    }
    this.#connection ??= await (this.#opening ??= this.#open().finally(() => (this.#opening = undefined)));
    if (this.#isClosed) this.close();
    return this.#connection;
  }

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }

  /** After a cut-off the browser may still be deleting the data. */
  async #open(): Promise<IDBPDatabase<Schema>> {
    for (let triesLeft = this.#isCutOff ? REOPEN_TRIES : 0; ; triesLeft -= 1) {
      try {
        return await openDatabase(this.#name, { taken: () => this.#receiveTaken(), cutOff: () => this.#receiveCutOff() });
      } catch (cause) {
        if (triesLeft === 0) throw cause; // Any error: try again.
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
        ? "a later version of this application wrote the stored data, which is left unchanged: reload the page"
        : "the browser does not open its database: in private windows some do not",
      { cause },
    );
  }
}

/** Runs all requests in one transaction, or none of them. */
export async function transact<Mode extends "readonly" | "readwrite", Result>(
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
    if (!(error instanceof DOMException && error.name === "InvalidStateError")) throw error; // The transaction has already ended.
  }
}

/** Rows of one room in a browser's store: the document as consecutive pieces, and unsent edits by page. */
export type Condense = StoredRoom["condense"];
/** An edit of a page that ended. `edit`: the edit as this page's own. */
export type Left = { readonly page: PageId; readonly place: number; readonly edit: KeptEdit };

/** Pieces are condensed into one when they have as many bytes as the last condensed piece, and at least this many. */
const CONDENSE_BYTES_MIN = 65_536;

export async function pagesWithEdits(transaction: StoreRead, key: string): Promise<ReadonlySet<PageId>> {
  const keys = await transaction.objectStore("edits").getAllKeys(allOf(key));
  return new Set(keys.map(([, page]) => page));
}

/** Grouped by ended page, in order. */
export async function editsOfEndedPages(transaction: StoreRead, key: string, ended: ReadonlySet<PageId>): Promise<Left[]> {
  const edits = (await transaction.objectStore("edits").getAll(allOf(key))).filter((edit) => ended.has(edit.page));
  return edits.map(({ page, place, payload, made, sent }, index) => ({ page, place, edit: { place: index + 1, payload, made, sent } }));
}

export async function takeOver(
  transaction: StoreWrite,
  { key, page }: { readonly key: string; readonly page: PageId },
  left: readonly Left[],
): Promise<void> {
  const edits = transaction.objectStore("edits");
  for (const { page: from, place } of left) await edits.delete([key, from, place]);
  for (const { edit } of left) await edits.put({ ...edit, room: key, page });
}

/** `replace`: true if the document was stored in several pieces. */
export async function readDocument(
  transaction: StoreRead,
  key: string,
  condense: NonNullable<Condense>,
  replace: (head: Head, payload: Uint8Array) => Promise<void>,
): Promise<KeptDocument | undefined> {
  const head = await transaction.objectStore("heads").get(key);
  if (head === undefined) return undefined;
  const all = (await transaction.objectStore("pieces").getAll(allOf(key))).flatMap(({ payloads }) => payloads);
  const [only] = all;
  const payload = only !== undefined && all.length === 1 ? only : ownBytes(condense(all));
  if (payload !== only) await replace(head, payload);
  return { position: head.position, last: head.last, payload };
}

export async function writeDocument(
  transaction: StoreWrite,
  key: string,
  change: DocumentChange,
  condense: NonNullable<Condense>,
): Promise<void> {
  const [heads, pieces] = [transaction.objectStore("heads"), transaction.objectStore("pieces")];
  const before = await heads.get(key);
  switch (change.kind) {
    case "forgotten":
      await heads.delete(key);
      await pieces.delete(allOf(key));
      return;
    case "begun":
      if (before !== undefined && isBehind(change.position, before.position)) return;
      await pieces.delete(allOf(key));
      await heads.put({
        room: key,
        position: change.position,
        last: change.last,
        place: 1,
        bytes: 0,
        condensedBytes: change.payload.byteLength,
      });
      await pieces.put({ room: key, place: 1, payloads: [ownBytes(change.payload)] });
      return;
    case "continued": {
      const { position, after, last } = change;
      const from = before?.position.seq ?? (0 as Seq);
      // The change would leave a gap, or is already stored.
      if (from < after || position.seq <= from || position.epoch < (before?.position.epoch ?? 0)) return;
      const payloads = change.payloads.slice(from - after).map(ownBytes);
      const head = {
        room: key,
        position,
        last,
        place: (before?.place ?? 0) + 1,
        bytes: (before?.bytes ?? 0) + bytesOf(payloads),
        condensedBytes: before?.condensedBytes ?? 0,
      };
      await heads.put(head);
      await pieces.put({ room: key, place: head.place, payloads });
      if (head.bytes > Math.max(CONDENSE_BYTES_MIN, head.condensedBytes)) {
        await readDocument(transaction, key, condense, (of, payload) => replacePieces(transaction, of, payload));
      }
    }
  }
}

/** Condenses all pieces into one, which replaces them. */
export async function replacePieces(transaction: StoreWrite, head: Head, payload: Uint8Array): Promise<void> {
  const pieces = transaction.objectStore("pieces");
  await pieces.delete(allOf(head.room));
  await pieces.put({ room: head.room, place: head.place, payloads: [payload] });
  await transaction.objectStore("heads").put({ ...head, bytes: 0, condensedBytes: payload.byteLength });
}

function isBehind(one: Position, other: Position): boolean {
  return one.seq <= other.seq && one.epoch <= other.epoch;
}

/** Matches every row of the room: arrays sort behind all numbers and strings. */
export function allOf(key: string): IDBKeyRange {
  return IDBKeyRange.bound([key], [key, []]);
}

/** Copies a view, because storing it would store its whole buffer. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
}

function bytesOf(payloads: readonly Uint8Array[]): number {
  return payloads.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
