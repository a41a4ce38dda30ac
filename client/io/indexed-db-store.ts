/**
 * The entry point `@coroom/client/indexeddb`: stores rooms in the browser's IndexedDB, beyond the life of a page.
 * Several pages may have a room open. Each writes its unsent edits to its own rows. All pages write the same document as
 * a chain of rows, in which each row continues the one before. A page holds a Web Lock while it lives. The next page that
 * opens the room takes over the edits of each page whose lock it obtains.
 *
 * @module @coroom/client/indexeddb
 */

import { assert } from "../../shared/assert.ts";
import { assertOptions } from "../options.ts";
import { DeviceStore } from "../persistence/device-store.ts";
import type { KeptChange, KeptRoom, RoomStore, StoredRoom } from "../persistence/edit-store.ts";
import {
  ALL,
  StoreDatabase,
  transact,
  allOf,
  type Condense,
  type Left,
  editsOfEndedPages,
  pagesWithEdits,
  ownBytes,
  readDocument,
  replacePieces,
  takeOver,
  writeDocument,
  type PageId,
} from "./store-database.ts";

/** Whose data is stored. */
type IndexedDbStoreOptions = {
  /**
   * The owner of these edits and documents. The data is neither shown to nor sent by other users of this device. Pass
   * an id that is unique among all users who may sign in here, such as tenant and user id: `acme/ada`.
   */
  readonly owner: string;
};

/** One room in one page. */
type Part = {
  readonly key: string;
  readonly page: PageId;
  readonly condense: Condense;
  /** Edits of ended pages, which the next write takes over. */
  readonly left: Left[];
};

const PAGE_ID_BYTES = 12;
/**
 * Maximum wait for the lock of a page with edits. The browser releases it some time after the page ended, and removes a
 * page from the back/forward cache whose lock another page requests.
 */
const ENDING_MS_MAX = 1_000;
/**
 * Survives the end of the page and the browser, but not always a power cut. Edits wait for the write, and a flush of
 * the disk would take too long.
 */
const RELAXED = { durability: "relaxed" } as const;

/** Create one store for the whole application; each room opens its own part. */
export function indexedDbStore(options: IndexedDbStoreOptions): DeviceStore {
  const name = databaseOf(options);
  return new DeviceStore({ open: (room) => openRoom(name, room) });
}

/**
 * Removes everything stored for this owner. Use it on sign-out. Pages with open rooms continue without a store.
 * Resolves when the data is gone, and at once where there is no IndexedDB.
 */
export async function forgetIndexedDbStore(options: IndexedDbStoreOptions): Promise<void> {
  const name = databaseOf(options);
  try {
    if (typeof indexedDB === "undefined") return; // Nothing was ever stored.
    await deleted(indexedDB.deleteDatabase(name));
  } catch (cause) {
    const isDenied = cause instanceof DOMException && cause.name === "SecurityError";
    const advice = isDenied ? "the browser denies this page its storage" : "close other pages of this application and try again";
    throw new Error(`cannot remove the data stored on this device: ${advice}`, { cause });
  }
}

function deleted(request: IDBOpenDBRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve();
    request.onerror = () => reject(request.error);
  });
}

/** JavaScript callers may pass anything. Without an owner, all users of the device would share one store. */
function databaseOf(options: IndexedDbStoreOptions): string {
  assertOptions(options, "owner");
  const { owner } = options;
  assert(
    typeof owner === "string" && owner !== "",
    "`owner` must identify the user: a string that is unique among all users who may sign in on this device",
  );
  return `coroom/${owner}`;
}

async function openRoom(name: string, { server, room, condense, lost = () => {} }: StoredRoom): Promise<RoomStore> {
  if (typeof indexedDB === "undefined") {
    throw new Error("IndexedDB is not available. In Node omit the option `store`, or pass your own EditStore.");
  }
  if (typeof navigator === "undefined" || navigator.locks === undefined) {
    throw new Error("Web Locks are not available. Serve the page over https or from localhost.");
  }
  const key = `${server} ${room}`;
  const page = randomId();
  const database = await StoreDatabase.open(name, lost);
  const part: Part = { key, page, condense, left: [] };
  const held = new Map<PageId, () => Promise<void>>();
  const hold = async (one: PageId, options?: LockOptions): Promise<void> => void held.set(one, await lock(lockOf(name, one), options));
  const holdIfEnded = async (one: PageId): Promise<void> => {
    for (;;) {
      try {
        return await hold(one, { signal: AbortSignal.timeout(ENDING_MS_MAX) });
      } catch {
        const { held: locks = [] } = await navigator.locks.query(); // A busy device may not have answered in time.
        if (locks.some((other) => other.name === lockOf(name, one))) return; // The page runs.
      }
    }
  };
  const release = (): void => {
    database.close();
    for (const release of held.values()) void release();
  };
  try {
    await hold(page);
    const db = await database.connection();
    await Promise.all([...(await pagesWithEdits(db.transaction(ALL, "readonly"), key))].map(holdIfEnded));
    const kept = await readKept(database, part, new Set(held.keys()));
    return { kept, keep: (change) => write(database, part, change), forget: () => forgetRoom(database, key), close: release };
  } catch (cause) {
    release();
    throw cause;
  }
}

/** `ended`: pages whose locks this page holds. Until it closes, no other page can take over their edits. */
async function readKept(database: StoreDatabase, part: Part, ended: ReadonlySet<PageId>): Promise<KeptRoom> {
  const { key, condense } = part;
  const db = await database.connection();
  try {
    return await transact(db.transaction(ALL, "readwrite"), async (transaction) => {
      const left = await editsOfEndedPages(transaction, key, ended);
      await takeOver(transaction, part, left);
      return {
        document:
          condense && (await readDocument(transaction, key, condense, (head, payload) => replacePieces(transaction, head, payload))),
        edits: left.map(({ edit }) => edit),
      };
    });
  } catch {
    return await transact(db.transaction(ALL, "readonly"), async (transaction) => {
      // A full device accepts no writes, but still has all earlier data.
      part.left.push(...(await editsOfEndedPages(transaction, key, ended)));
      return {
        document: condense && (await readDocument(transaction, key, condense, async () => {})),
        edits: part.left.map(({ edit }) => edit),
      };
    });
  }
}

async function write(database: StoreDatabase, part: Part, { put, drop, document }: KeptChange): Promise<void> {
  const { key, page, condense, left } = part;
  const db = await database.connection();
  try {
    await transact(db.transaction(ALL, "readwrite", RELAXED), async (transaction) => {
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
        : "the browser's database did not take them: once they are saved in the room, load the page again",
      { cause },
    );
  }
}

async function forgetRoom(database: StoreDatabase, key: string): Promise<void> {
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

/**
 * Finds out which pages of this browser run: each holds a Web Lock of its own name, which the browser releases when the
 * page ends.
 */
function lockOf(name: string, page: PageId): string {
  return `${name} page ${page}`;
}

/** Resolves once the lock is held, with a function that releases it. Rejects when the signal in `options` aborts before. */
function lock(name: string, options: LockOptions = {}): Promise<() => Promise<void>> {
  return new Promise((held, failed) => {
    const until = new Promise<void>((release) => {
      const released = navigator.locks.request(name, options, () => {
        held(() => {
          release();
          return released;
        });
        return until;
      });
      released.catch(failed);
    });
  });
}
