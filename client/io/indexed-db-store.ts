/**
 * Keeps rooms in the browser's IndexedDB, over the page's end. Several pages may have a room open: each writes what
 * waits in it to rows of its own, and all the same document, of which each row joins on to the one before. A page holds
 * a Web Lock for as long as it lives; what pages without one left behind goes to the next page that opens the room.
 */

import { type DBSchema, type IDBPDatabase, type IDBPTransaction, openDB } from "idb";

import type { Position, Seq } from "../../shared/ids.ts";
import type { DocumentChange, EditName, EditStore, KeptChange, KeptDocument, KeptEdit, KeptRoom, RoomStore, StoredRoom } from "../keeping/edit-store.ts";

export type IndexedDbStoreOptions = {
  /**
   * Whose edits and documents these are: nobody else on this device is shown them, or sends them as their own.
   * Give what is unique among all who may sign in here, such as tenant and user id: `acme/ada`.
   */
  readonly owner: string;
};

/** Version 1. A later one adds its step to `upgrade`, and leaves those before it as they are. */
const SCHEMA_VERSION = 1;

interface Schema extends DBSchema {
  /** A room's document: how far its pieces go. */
  heads: { key: string; value: Head };
  /** In their order. */
  pieces: { key: [string, number]; value: { readonly room: string; readonly place: number; readonly payloads: readonly Uint8Array[] } };
  /** What waits, by page. */
  edits: { key: [string, string, number]; value: KeptEdit & { readonly room: string; readonly page: string } };
}

type Head = { readonly room: string; readonly position: Position; readonly last: EditName | undefined; /** Of the last piece. */ readonly place: number; /** Of the pieces behind the first. */ readonly bytes: number; readonly condensedBytes: number };
type Stores = ["heads", "pieces", "edits"];
type Reading = IDBPTransaction<Schema, Stores, "readonly" | "readwrite">;
type Writing = IDBPTransaction<Schema, Stores, "readwrite">;
/** Of a page that is gone. `edit`: as this page's own. */
type Left = { readonly page: PageId; readonly place: number; readonly edit: KeptEdit };
type PageId = string;
type Condense = StoredRoom["condense"];
/** What one page has open. */
type Part = { readonly key: string; readonly page: PageId; readonly condense: Condense; /** Taken over with the next write. */ readonly left: Left[] };

/** `closed`: for their locks go a moment later. `leaving`: each with a promise that is kept once it is closed. */
type Here = { readonly name: string; readonly closed: Set<PageId>; readonly leaving: Map<PageId, { readonly key: string; readonly left: Promise<void> }> };

const ALL = ["heads", "pieces", "edits"] as const;
/** Pieces are condensed into one when they have as many bytes as the last such one, and not for less than this. */
const CONDENSE_BYTES_MIN = 65_536;
const PAGE_ID_BYTES = 12;
/** Outlasts the page and the browser; the last moments before a power cut it need not. Edits wait for it: a disk's flush would take too long. */
const RELAXED = { durability: "relaxed" } as const;

/** One for the whole application; each room opens its own part. */
export function indexedDbStore({ owner }: IndexedDbStoreOptions): EditStore {
  const here: Here = { name: databaseOf(owner), closed: new Set(), leaving: new Map() };
  return { open: (room) => openRoom(here, room) };
}

/** For signing out: removes everything that is kept of this owner's. Pages that have rooms open go on without a store. Resolves when it is gone. */
export async function forgetIndexedDbStore({ owner }: IndexedDbStoreOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const request = indexedDB.deleteDatabase(databaseOf(owner));
    request.onsuccess = () => resolve();
    request.onerror = () => reject(new Error("what is kept on this device could not be removed: try again when no other page of this application is open", { cause: request.error }));
  });
}

function databaseOf(owner: string): string {
  return `coroom/${owner}`;
}

async function openRoom({ name, closed, leaving }: Here, { server, room, condense }: StoredRoom): Promise<RoomStore> {
  if (typeof indexedDB === "undefined") throw new Error("there is no IndexedDB here: leave the option `store` out in Node, or give a store of your own");
  if (typeof navigator === "undefined" || navigator.locks === undefined) throw new Error("there are no Web Locks here: serve the page over https (or from localhost)");
  const key = `${server} ${room}`;
  const page = randomId();
  const db = await openDatabase(name);
  const part: Part = { key, page, condense, left: [] };
  const held = new Map<PageId, () => Promise<void>>();
  const hold = async (one: PageId): Promise<void> => {
    held.set(one, await lock(lockOf(name, one)));
    closed.delete(one);
  };
  let tellLeft = (): void => {};
  const leave = (): void => {
    if (!leaving.has(page)) leaving.set(page, { key, left: new Promise((left) => (tellLeft = left)) });
  };
  const letGo = (): void => {
    for (const one of held.keys()) closed.add(one);
    db.close();
    leaving.delete(page);
    tellLeft();
    for (const [one, release] of held) void release().then(() => closed.delete(one));
  };
  try {
    await hold(page);
    await Promise.all([...leaving.values()].map((other) => (other.key === key ? other.left : undefined)));
    const kept = await alone(`${name} opening`, async () => {
      const found = await readKept(db, part, await livePages(name, closed));
      for (const one of new Set(part.left.map((edit) => edit.page))) await hold(one); // No other page may take them.
      return found;
    });
    return { kept, keep: (change) => write(db, part, change), forget: () => forgetRoom(db, key), leave, close: letGo };
  } catch (cause) {
    letGo();
    throw cause;
  }
}

/** `live`: as of now. Nobody else may open the room until what the others left is taken over, for they would not be among them. */
async function readKept(db: IDBPDatabase<Schema>, part: Part, live: ReadonlySet<PageId>): Promise<KeptRoom> {
  const { key, condense } = part;
  try {
    return await whole(db.transaction(ALL, "readwrite"), async (transaction) => {
      const left = await leftBehind(transaction, key, live);
      await takeOver(transaction, part, left);
      return { document: condense && (await readDocument(transaction, key, condense, (head, payload) => replacePieces(transaction, head, payload))), edits: left.map(({ edit }) => edit) };
    });
  } catch {
    return await whole(db.transaction(ALL, "readonly"), async (transaction) => { // A full device takes nothing, and has all that it had.
      part.left.push(...(await leftBehind(transaction, key, live)));
      return { document: condense && (await readDocument(transaction, key, condense, async () => {})), edits: part.left.map(({ edit }) => edit) };
    });
  }
}

/** All that is asked in it, or nothing. */
async function whole<Mode extends "readonly" | "readwrite", Result>(transaction: IDBPTransaction<Schema, Stores, Mode>, run: (transaction: IDBPTransaction<Schema, Stores, Mode>) => Promise<Result>): Promise<Result> {
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

async function openDatabase(name: string): Promise<IDBPDatabase<Schema>> {
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

/** By pages that are gone, in their order. */
async function leftBehind(transaction: Reading, key: string, live: ReadonlySet<PageId>): Promise<Left[]> {
  const edits = (await transaction.objectStore("edits").getAll(allOf(key))).filter((edit) => !live.has(edit.page));
  return edits.map(({ page, place, payload, made, sent }, index) => ({ page, place, edit: { place: index + 1, payload, made, sent } }));
}

async function takeOver(transaction: Writing, { key, page }: Part, left: readonly Left[]): Promise<void> {
  const edits = transaction.objectStore("edits");
  for (const { page: from, place } of left) await edits.delete([key, from, place]);
  for (const { edit } of left) await edits.put({ ...edit, room: key, page });
}

/** `replace`: where it came in several pieces. */
async function readDocument(transaction: Reading, key: string, condense: NonNullable<Condense>, replace: (head: Head, payload: Uint8Array) => Promise<void>): Promise<KeptDocument | undefined> {
  const head = await transaction.objectStore("heads").get(key);
  if (head === undefined) return undefined;
  const all = (await transaction.objectStore("pieces").getAll(allOf(key))).flatMap(({ payloads }) => payloads);
  const [only] = all;
  const payload = only !== undefined && all.length === 1 ? only : ownBytes(condense(all));
  if (payload !== only) await replace(head, payload);
  return { position: head.position, last: head.last, payload };
}

async function write(db: IDBPDatabase<Schema>, part: Part, { put, drop, document }: KeptChange): Promise<void> {
  const { key, page, condense, left } = part;
  try {
    await whole(db.transaction(ALL, "readwrite", RELAXED), async (transaction) => {
      const edits = transaction.objectStore("edits");
      await takeOver(transaction, part, left);
      for (const place of drop) await edits.delete([key, page, place]);
      for (const edit of put) await edits.put({ ...edit, payload: ownBytes(edit.payload), room: key, page });
      if (condense !== undefined) for (const change of document) await writeDocument(transaction, key, change, condense);
    });
    left.length = 0;
  } catch (cause) {
    const isFull = cause instanceof DOMException && cause.name === "QuotaExceededError";
    throw new Error(isFull ? "the browser gives this site no more storage: free some on this device" : "the browser's database did not take them: load the page again", { cause });
  }
}

async function forgetRoom(db: IDBPDatabase<Schema>, key: string): Promise<void> {
  const transaction = db.transaction(ALL, "readwrite");
  await Promise.all([transaction.objectStore("heads").delete(key), transaction.objectStore("pieces").delete(allOf(key)), transaction.objectStore("edits").delete(allOf(key)), transaction.done]);
}

async function writeDocument(transaction: Writing, key: string, change: DocumentChange, condense: NonNullable<Condense>): Promise<void> {
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
      await heads.put({ room: key, position: change.position, last: undefined, place: 1, bytes: 0, condensedBytes: change.payload.byteLength });
      await pieces.put({ room: key, place: 1, payloads: [ownBytes(change.payload)] });
      return;
    case "continued": {
      const { position, after, last } = change;
      const from = before?.position.seq ?? (0 as Seq);
      if (from < after || position.seq <= from || position.epoch < (before?.position.epoch ?? 0)) return; // It leaves a hole, or is known.
      const payloads = change.payloads.slice(from - after).map(ownBytes);
      const head = { room: key, position, last, place: (before?.place ?? 0) + 1, bytes: (before?.bytes ?? 0) + bytesOf(payloads), condensedBytes: before?.condensedBytes ?? 0 };
      await heads.put(head);
      await pieces.put({ room: key, place: head.place, payloads });
      if (head.bytes > Math.max(CONDENSE_BYTES_MIN, head.condensedBytes)) await readDocument(transaction, key, condense, (of, payload) => replacePieces(transaction, of, payload));
    }
  }
}

/** All pieces as one, which takes their place. */
async function replacePieces(transaction: Writing, head: Head, payload: Uint8Array): Promise<void> {
  const pieces = transaction.objectStore("pieces");
  await pieces.delete(allOf(head.room));
  await pieces.put({ room: head.room, place: head.place, payloads: [payload] });
  await transaction.objectStore("heads").put({ ...head, bytes: 0, condensedBytes: payload.byteLength });
}

function isBehind(one: Position, other: Position): boolean {
  return one.seq <= other.seq && one.epoch <= other.epoch;
}

/** Every row of the room: an array is behind all numbers and texts. */
function allOf(key: string): IDBKeyRange {
  return IDBKeyRange.bound([key], [key, []]);
}

/** A view of a larger buffer would be stored with all of it. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
}

function bytesOf(payloads: readonly Uint8Array[]): number {
  return payloads.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function lockOf(name: string, page: PageId): string {
  return `${name} page ${page}`;
}

/** Resolves once the lock is held, with what gives it back. */
function lock(name: string): Promise<() => Promise<void>> {
  return new Promise((held, failed) => {
    const until = new Promise<void>((letGo) => {
      const released = navigator.locks.request(name, () => {
        held(() => {
          letGo();
          return released;
        });
        return until;
      });
      released.catch(failed);
    });
  });
}

async function alone<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  const letGo = await lock(name);
  try {
    return await run();
  } finally {
    void letGo();
  }
}

async function livePages(name: string, closed: ReadonlySet<PageId>): Promise<ReadonlySet<PageId>> {
  const prefix = lockOf(name, "");
  const { held = [] } = await navigator.locks.query();
  return new Set(held.flatMap(({ name: lock }) => (lock?.startsWith(prefix) ? [lock.slice(prefix.length)] : [])).filter((page) => !closed.has(page)));
}

function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(PAGE_ID_BYTES)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
