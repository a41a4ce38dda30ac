/**
 * Keeps rooms in the browser's IndexedDB, over the page's end. Several pages may have a room open: each writes what
 * waits in it to rows of its own, and all the same document, of which each row joins on to the one before. A page holds
 * a Web Lock for as long as it lives; what pages without one left behind goes to the next page that opens the room.
 */

import { assert } from "../../shared/assert.ts";
import type { EditStore, KeptChange, KeptRoom, RoomStore, StoredRoom } from "../keeping/edit-store.ts";
import { ALL, KeptDatabase, whole } from "./kept-database.ts";
import {
  allOf,
  type Condense,
  type Left,
  leftBehind,
  ownBytes,
  readDocument,
  replacePieces,
  takeOver,
  writeDocument,
} from "./kept-rows.ts";
import { alone, livePages, lock, lockOf, type PageId } from "./page-locks.ts";

export type IndexedDbStoreOptions = {
  /**
   * Whose edits and documents these are: nobody else on this device is shown them, or sends them as their own.
   * Give what is unique among all who may sign in here, such as tenant and user id: `acme/ada`.
   */
  readonly owner: string;
};

/** What one page has open. */
type Part = {
  readonly key: string;
  readonly page: PageId;
  readonly condense: Condense;
  /** Taken over with the next write. */
  readonly left: Left[];
};

/** `closed`: for their locks go a moment later. `leaving`: each with a promise that is kept once it is closed. */
type Here = {
  readonly name: string;
  readonly closed: Set<PageId>;
  readonly leaving: Map<PageId, { readonly key: string; readonly left: Promise<void> }>;
};

const PAGE_ID_BYTES = 12;
/**
 * Outlasts the page and the browser; the last moments before a power cut it need not. Edits wait for it: a disk's
 * flush would take too long.
 */
const RELAXED = { durability: "relaxed" } as const;

/** One for the whole application; each room opens its own part. */
export function indexedDbStore({ owner }: IndexedDbStoreOptions): EditStore {
  const here: Here = { name: databaseOf(owner), closed: new Set(), leaving: new Map() };
  return { open: (room) => openRoom(here, room) };
}

/**
 * For signing out: removes everything that is kept of this owner's. Pages that have rooms open go on without a store.
 * Resolves when it is gone.
 */
export async function forgetIndexedDbStore({ owner }: IndexedDbStoreOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const request = indexedDB.deleteDatabase(databaseOf(owner));
    request.onsuccess = () => resolve();
    request.onerror = () =>
      reject(
        new Error("what is kept on this device could not be removed: try again when no other page of this application is open", {
          cause: request.error,
        }),
      );
  });
}

/** From JavaScript anything may come: without an owner all who sign in here would be one. */
function databaseOf(owner: string): string {
  assert(typeof owner === "string" && owner !== "", "`owner` must say whose it is: a text that is unique among all who may sign in here");
  return `coroom/${owner}`;
}

async function openRoom({ name, closed, leaving }: Here, { server, room, condense, lost = () => {} }: StoredRoom): Promise<RoomStore> {
  if (typeof indexedDB === "undefined") {
    throw new Error("there is no IndexedDB here: leave the option `store` out in Node, or give a store of your own");
  }
  if (typeof navigator === "undefined" || navigator.locks === undefined) {
    throw new Error("there are no Web Locks here: serve the page over https (or from localhost)");
  }
  const key = `${server} ${room}`;
  const page = randomId();
  const database = await KeptDatabase.open(name, lost);
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
    database.close();
    leaving.delete(page);
    tellLeft();
    for (const [one, release] of held) void release().then(() => closed.delete(one));
  };
  try {
    await hold(page);
    await Promise.all([...leaving.values()].map((other) => (other.key === key ? other.left : undefined)));
    const kept = await alone(`${name} opening`, async () => {
      const found = await readKept(database, part, await livePages(name, closed));
      for (const one of new Set(part.left.map((edit) => edit.page))) await hold(one); // No other page may take them.
      return found;
    });
    return { kept, keep: (change) => write(database, part, change), forget: () => forgetRoom(database, key), leave, close: letGo };
  } catch (cause) {
    letGo();
    throw cause;
  }
}

/** `live`: as of now. Nobody else may open the room until what the others left is taken over, for they would not be among them. */
async function readKept(database: KeptDatabase, part: Part, live: ReadonlySet<PageId>): Promise<KeptRoom> {
  const { key, condense } = part;
  const db = await database.connection();
  try {
    return await whole(db.transaction(ALL, "readwrite"), async (transaction) => {
      const left = await leftBehind(transaction, key, live);
      await takeOver(transaction, part, left);
      return {
        document:
          condense && (await readDocument(transaction, key, condense, (head, payload) => replacePieces(transaction, head, payload))),
        edits: left.map(({ edit }) => edit),
      };
    });
  } catch {
    return await whole(db.transaction(ALL, "readonly"), async (transaction) => {
      // A full device takes nothing, and has all that it had.
      part.left.push(...(await leftBehind(transaction, key, live)));
      return {
        document: condense && (await readDocument(transaction, key, condense, async () => {})),
        edits: part.left.map(({ edit }) => edit),
      };
    });
  }
}

async function write(database: KeptDatabase, part: Part, { put, drop, document }: KeptChange): Promise<void> {
  const { key, page, condense, left } = part;
  const db = await database.connection();
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
    throw new Error(
      isFull
        ? "the browser gives this site no more storage: free some on this device"
        : "the browser's database did not take them: load the page again",
      { cause },
    );
  }
}

async function forgetRoom(database: KeptDatabase, key: string): Promise<void> {
  const transaction = (await database.connection()).transaction(ALL, "readwrite");
  await Promise.all([
    transaction.objectStore("heads").delete(key),
    transaction.objectStore("pieces").delete(allOf(key)),
    transaction.objectStore("edits").delete(allOf(key)),
    transaction.done,
  ]);
}

function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(PAGE_ID_BYTES)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
