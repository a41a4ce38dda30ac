/** Contract of a store, run on the browser's store (over an in-memory database) and on the tests' own store. */

import "fake-indexeddb/auto";

import { forceCloseDatabase } from "fake-indexeddb";
import { openDB } from "idb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { ClientId, ClientKey, Epoch, Position, RoomId, Seq } from "../../shared/ids.ts";
import type { DocumentChange, EditStore, KeptChange, KeptEdit, RoomStore, StoredRoom } from "../persistence/edit-store.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { forgetIndexedDbStore, indexedDbStore } from "./indexed-db-store.ts";
import { StoreDatabase } from "./store-database.ts";

const ROOM: StoredRoom = {
  server: "http://h",
  room: "notes" as RoomId,
  condense: (payloads) => Uint8Array.from(payloads.flatMap((payload) => [...payload])),
};
const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);
const at = (seq: number, epoch = 1): Position => ({ epoch: epoch as Epoch, seq: seq as Seq });
const unsent = (place: number, ...values: number[]): KeptEdit => ({ place, payload: bytes(...values), made: 1, sent: undefined });
const sent = (place: number, counter: number, ...values: number[]): KeptEdit => ({
  ...unsent(place, ...values),
  sent: { clientKey: "key-of-a-page" as ClientKey, counter, parentSeq: 3 as Seq },
});
const last = (counter: number) => ({ client: "somebody________" as ClientId, counter });
const continued = (after: number, position: Position, ...payloads: Uint8Array[]): DocumentChange => ({
  kind: "continued",
  after: after as Seq,
  position,
  last: last(position.seq),
  payloads,
});
const change = (more: Partial<KeptChange>): KeptChange => ({ put: [], drop: [], document: [], ...more });

/** The part of a browser's Web Locks that is needed: one holder at a time, until its promise settles. */
class Locks {
  readonly #held = new Set<string>();
  readonly #waiting = new Map<string, (() => void)[]>();

  get waiting(): number {
    return [...this.#waiting.values()].flat().length;
  }

  /** Number of requests that a busy browser does not answer before they are aborted. */
  unanswered = 0;

  async request(name: string, { signal }: LockOptions, run: () => Promise<void>): Promise<void> {
    await Promise.resolve(); // Never called synchronously.
    if (signal !== undefined && this.unanswered > 0) {
      this.unanswered -= 1;
      await new Promise((resolve) => void signal.addEventListener("abort", resolve));
      signal.throwIfAborted();
    }
    while (this.#held.has(name)) {
      await new Promise<void>((resolve) => {
        this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve]);
        signal?.addEventListener("abort", () => resolve());
      });
      signal?.throwIfAborted();
    }
    this.#held.add(name);
    await run();
    this.#held.delete(name);
    for (const ask of this.#waiting.get(name)?.splice(0) ?? []) ask();
  }

  query(): Promise<{ held: { name: string }[] }> {
    return Promise.resolve({ held: [...this.#held].map((name) => ({ name })) });
  }

  /** Drops the locks of pages that ended. */
  drop(): void {
    this.#held.clear();
    for (const ask of [...this.#waiting.values()].flatMap((asking) => asking.splice(0))) ask();
  }
}

let locks: Locks;
let owners = 0;
let pages: RoomStore[] = [];

beforeEach(() => {
  locks = new Locks();
  vi.stubGlobal("navigator", { locks });
});

afterEach(() => {
  for (const page of pages) page.close();
  pages = [];
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

async function open(store: EditStore, room = ROOM): Promise<RoomStore> {
  const page = await store.open(room);
  pages.push(page);
  return page;
}

describe.each([
  ["in memory", () => new MemoryStore()],
  ["in IndexedDB", () => indexedDbStore({ owner: `acme/${owners++}` })],
] as const)("%s", (_, storeOf) => {
  test("[STO1] a page that opens after another receives the edits that it left, in order", async () => {
    const store = storeOf();
    const first = await open(store);
    expect(first.kept).toEqual({ document: undefined, edits: [] });
    await first.keep(change({ put: [unsent(1, 1), unsent(2, 2), unsent(3, 3)] }));
    await first.keep(change({ drop: [1, 2], put: [sent(4, 1, 1, 2)] }));
    first.close();
    const { kept } = await open(store);
    expect(kept.edits).toEqual([unsent(1, 3), sent(2, 1, 1, 2)]);
  });

  test("[STO2] edits that wait in a running page belong to that page; all pages share the room's document", async () => {
    const store = storeOf();
    const first = await open(store);
    await first.keep(change({ put: [unsent(1, 1)], document: [continued(0, at(2), bytes(1), bytes(2))] }));
    const second = await open(store);
    expect(second.kept).toEqual({ document: { position: at(2), last: last(2), payload: bytes(1, 2) }, edits: [] });
    await second.keep(change({ put: [unsent(1, 9)] }));
    first.close();
    expect((await open(store)).kept.edits).toEqual([unsent(1, 1)]);
  });

  test("[STO3] pages that write the same document store each edit once", async () => {
    const store = storeOf();
    const [first, second] = [await open(store), await open(store)];
    await first.keep(change({ document: [continued(0, at(2), bytes(1), bytes(2))] }));
    await second.keep(change({ document: [continued(0, at(3), bytes(1), bytes(2), bytes(3))] }));
    await first.keep(change({ document: [continued(2, at(3), bytes(3))] }));
    await first.keep(change({ document: [continued(3, at(4, 2), bytes(4))] }));
    expect((await open(store)).kept.document).toEqual({ position: at(4, 2), last: last(4), payload: bytes(1, 2, 3, 4) });
  });

  test("[STO4] an edit that would leave a gap, or belongs to a lost log, is not stored", async () => {
    const store = storeOf();
    const page = await open(store);
    await page.keep(change({ document: [continued(0, at(2, 5), bytes(1), bytes(2))] }));
    await page.keep(change({ document: [continued(3, at(4, 5), bytes(4))] }));
    await page.keep(change({ document: [continued(2, at(3, 4), bytes(9))] }));
    expect((await open(store)).kept.document).toMatchObject({ position: at(2, 5), payload: bytes(1, 2) });
  });

  test("[STO5] a snapshot replaces the edits that it contains, and nothing else", async () => {
    const store = storeOf();
    const page = await open(store);
    await page.keep(change({ document: [continued(0, at(1), bytes(1)), { kind: "begun", position: at(9), payload: bytes(7) }] }));
    await page.keep(change({ document: [{ kind: "begun", position: at(4), payload: bytes(8) }] }));
    expect((await open(store)).kept.document).toEqual({ position: at(9), last: undefined, payload: bytes(7) });
    await page.keep(change({ document: [continued(9, at(10), bytes(3))] }));
    expect((await open(store)).kept.document).toEqual({ position: at(10), last: last(10), payload: bytes(7, 3) });
    await page.keep(change({ document: [{ kind: "forgotten" }, continued(0, at(1, 2), bytes(1))] }));
    expect((await open(store)).kept.document).toEqual({ position: at(1, 2), last: last(1), payload: bytes(1) });
  });

  test("[STO10] a forgotten room leaves no data of any page; other rooms stay", async () => {
    const store = storeOf();
    const [here, there, other] = [await open(store), await open(store), await open(store, { ...ROOM, room: "other" as RoomId })];
    await here.keep(change({ put: [unsent(1, 1)], document: [{ kind: "begun", position: at(3), payload: bytes(1, 2) }] }));
    await there.keep(change({ put: [unsent(1, 2)] }));
    await other.keep(change({ put: [unsent(1, 3)] }));
    await here.forget();
    for (const page of [here, there, other]) page.close();
    locks.drop();
    expect((await open(store)).kept).toEqual({ document: undefined, edits: [] });
    expect((await open(store, { ...ROOM, room: "other" as RoomId })).kept.edits).toHaveLength(1);
  });

  test("[STO6] rooms and servers are separate, and a room whose payloads cannot be merged stores only unsent edits", async () => {
    const store = storeOf();
    const page = await open(store);
    await page.keep(change({ put: [unsent(1, 1)], document: [continued(0, at(1), bytes(1))] }));
    page.close();
    for (const other of [
      { ...ROOM, room: "note" as RoomId },
      { ...ROOM, server: "http://other" },
    ])
      expect((await open(store, other)).kept).toEqual({ document: undefined, edits: [] });
    expect((await open(store, { ...ROOM, condense: undefined })).kept).toEqual({ document: undefined, edits: [unsent(1, 1)] });
  });
});

test("[STO7] a growing document is condensed regularly, so that it takes no more space than the document", async () => {
  let condensed = 0;
  const room: StoredRoom = { ...ROOM, condense: (payloads) => bytes(payloads.length === 0 ? 0 : (condensed += 1)) };
  const store = indexedDbStore({ owner: "acme/large" });
  const page = await open(store, room);
  for (let seq = 0; seq < 40; seq++) await page.keep(change({ document: [continued(seq, at(seq + 1), new Uint8Array(10_000))] }));
  expect(condensed).toBe(5);
  const db = await openDB("coroom/acme/large");
  expect(await db.count("pieces")).toBeLessThan(8);
  db.close();
});

test("[STO7] the store holds only the viewed bytes of a view on a large buffer", async () => {
  const store = indexedDbStore({ owner: "acme/views" });
  const page = await open(store);
  const payload = new Uint8Array(1_000_000).subarray(10, 13);
  await page.keep(change({ put: [{ ...unsent(1), payload }], document: [continued(0, at(1), payload)] }));
  const db = await openDB("coroom/acme/views");
  const [edit] = (await db.getAll("edits")) as { payload: Uint8Array }[];
  const [piece] = (await db.getAll("pieces")) as { payloads: Uint8Array[] }[];
  expect([edit!.payload.buffer.byteLength, piece!.payloads[0]!.buffer.byteLength]).toEqual([3, 3]);
  db.close();
});

test("[STO8] the edits of a page that ended become available to other pages", async () => {
  const store = indexedDbStore({ owner: "acme/dies" });
  const page = await open(store);
  await page.keep(change({ put: [unsent(1, 1)] }));
  expect((await open(store)).kept.edits).toEqual([]);
  locks.drop();
  expect((await open(store)).kept.edits).toEqual([unsent(1, 1)]);
});

test("[STO8] two pages that open at once do not both take over the same edits", async () => {
  const store = indexedDbStore({ owner: "acme/at-once" });
  const page = await open(store);
  await page.keep(change({ put: [unsent(1, 1), sent(2, 1, 2)] }));
  page.close();
  const taken = (await Promise.all([open(store), open(store), open(store)])).map(({ kept }) => kept.edits.length);
  expect(taken.sort()).toEqual([0, 0, 2]);
});

test("[STO11] a page whose lock is released late leaves its edits to a page that opens meanwhile, which takes nothing from running pages", async () => {
  const store = indexedDbStore({ owner: "acme/slow" });
  const [page, other] = [await open(store), await open(store)];
  await page.keep(change({ put: [unsent(1, 1), sent(2, 1, 2)] }));
  const next = open(store);
  await vi.waitFor(() => expect(locks.waiting).toBe(1));
  await other.keep(change({ put: [unsent(1, 9)] }));
  page.close();
  expect((await next).kept.edits).toEqual([unsent(1, 1), sent(2, 1, 2)]);
});

test("[STO11] a browser that is too busy to answer in time leaves no edits behind", async () => {
  const store = indexedDbStore({ owner: "acme/busy" });
  const page = await open(store);
  await page.keep(change({ put: [unsent(1, 1)] }));
  page.close();
  locks.unanswered = 1;
  expect((await open(store)).kept.edits).toEqual([unsent(1, 1)]);
});

test("[STO12] on a full device all edits can be read, and are taken over once there is space", async () => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  const store = indexedDbStore({ owner: "acme/full" });
  const page = await open(store);
  await page.keep(change({ put: [unsent(1, 1), sent(2, 1, 2), unsent(3, 3)], document: [continued(0, at(1), bytes(1))] }));
  await page.keep(change({ document: [continued(1, at(2), bytes(2))] }));
  page.close();
  const full = vi.spyOn(IDBObjectStore.prototype, "put").mockImplementation(() => {
    throw new DOMException("full", "QuotaExceededError");
  });
  const late = await open(store);
  expect(late.kept).toEqual({
    document: { position: at(2), last: last(2), payload: bytes(1, 2) },
    edits: [unsent(1, 1), sent(2, 1, 2), unsent(3, 3)],
  });
  expect((await open(store)).kept.edits).toEqual([]); // The edits belong to the other page.
  await expect(late.keep(change({ drop: [1], put: [unsent(4, 4)] }))).rejects.toThrow("no more storage");
  full.mockRestore();
  await late.keep(change({ drop: [1], put: [unsent(4, 4)] }));
  late.close();
  expect((await open(store)).kept.edits).toEqual([sent(1, 1, 2), unsent(2, 3), unsent(3, 4)]);
  await new Promise((resolve) => setImmediate(resolve)); // Node reports unhandled rejections after the current tasks.
  process.off("unhandledRejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test("[STO9] owners are separate, and the data of one owner can be removed", async () => {
  const [ada, grace] = [indexedDbStore({ owner: "acme/ada" }), indexedDbStore({ owner: "acme/grace" })];
  const lost = vi.fn();
  const page = await open(ada, { ...ROOM, lost });
  await page.keep(change({ put: [unsent(1, 1)] }));
  expect((await open(grace)).kept.edits).toEqual([]);
  await forgetIndexedDbStore({ owner: "acme/ada" }); // Although a page has it open.
  expect(lost).toHaveBeenCalledOnce();
  await expect(page.keep(change({ put: [unsent(2, 2)] }))).rejects.toThrow("another page of this application removed the stored data");
  page.close();
  expect((await open(ada)).kept.edits).toEqual([]);
});

test.each([
  ["and cleared", true],
  ["and left as it is", false],
])(
  "[STO14] a database that the browser closed %s is opened again, and the room learns that stored data may be lost",
  async (_, isCleared) => {
    const asked = vi.spyOn(indexedDB, "open");
    const lost = vi.fn();
    const store = indexedDbStore({ owner: `acme/cut-off-${isCleared}` });
    const page = await open(store, { ...ROOM, lost });
    await page.keep(change({ put: [unsent(1, 1)] }));
    forceCloseDatabase(asked.mock.results.at(-1)!.value.result);
    if (isCleared) await new Promise((done) => (indexedDB.deleteDatabase(`coroom/acme/cut-off-${isCleared}`).onsuccess = done));
    await vi.waitFor(() => expect(lost).toHaveBeenCalledOnce());
    await page.keep(change({ put: [unsent(2, 2)] }));
    page.close();
    expect((await open(store)).kept.edits).toEqual(isCleared ? [unsent(1, 2)] : [unsent(1, 1), unsent(2, 2)]);
  },
);

test("[STO14] a database that the browser closed and is still deleting is opened once the deletion is done", async () => {
  const asked = vi.spyOn(indexedDB, "open");
  const lost = vi.fn();
  const store = indexedDbStore({ owner: "acme/clearing" });
  const page = await open(store, { ...ROOM, lost });
  forceCloseDatabase(asked.mock.results.at(-1)!.value.result);
  await vi.waitFor(() => expect(lost).toHaveBeenCalledOnce());
  asked.mockImplementationOnce(() => {
    throw new DOMException("being deleted", "AbortError");
  });
  await page.keep(change({ put: [unsent(1, 1)] }));
  page.close();
  expect((await open(store)).kept.edits).toEqual([unsent(1, 1)]);
});

test("[STO9] the store does not change data that a later version of this package wrote", async () => {
  (await openDB("coroom/acme/later", 7)).close();
  await expect(indexedDbStore({ owner: "acme/later" }).open(ROOM)).rejects.toThrow("later version");
});

test.each([
  ["IndexedDB", () => vi.stubGlobal("indexedDB", undefined), "IndexedDB is not available. In Node omit the option `store`"],
  ["Web Locks", () => vi.stubGlobal("navigator", {}), "Web Locks are not available. Serve the page over https"],
])("[STO9] without %s the error names the remedy", async (_, takeAway, advice) => {
  takeAway();
  await expect(indexedDbStore({ owner: "acme/nowhere" }).open(ROOM)).rejects.toThrow(advice);
});

test("[STO9] signing out works without IndexedDB, where nothing was stored, and names the cause where the browser denies access", async () => {
  vi.stubGlobal("indexedDB", undefined);
  await forgetIndexedDbStore({ owner: "acme/nowhere" });
  const denied = new DOMException("The operation is insecure.", "SecurityError");
  vi.stubGlobal("indexedDB", {
    deleteDatabase: () => {
      throw denied;
    },
  });
  await expect(forgetIndexedDbStore({ owner: "acme/denied" })).rejects.toMatchObject({
    message: "cannot remove the data stored on this device: the browser denies this page its storage",
    cause: denied,
  });
});

test("[STO15] requests at the same time after a cut-off open the database once", async () => {
  const database = await StoreDatabase.open("cut off", () => {});
  forceCloseDatabase((await database.connection()) as unknown as Parameters<typeof forceCloseDatabase>[0]);
  const opened = vi.spyOn(indexedDB, "open");
  const [first, second] = await Promise.all([database.connection(), database.connection()]);
  expect(opened).toHaveBeenCalledTimes(1);
  expect(first).toBe(second);
  opened.mockRestore();
  database.close();
});
