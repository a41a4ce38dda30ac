/**
 * A device's store in memory, with open pages and the edits of ended pages. It meets the same contract as the real
 * store.
 */

import * as Y from "yjs";

import type { RoomId } from "../../shared/ids.ts";
import type { ClientFrame } from "../../shared/wire/frames.ts";
import type { EditStore, KeptChange, KeptDocument, KeptEdit, RoomStore, StoredRoom } from "../persistence/edit-store.ts";
import { ClientFakeClock } from "./fake-clock.ts";
import { ModelServer } from "./model-server.ts";

type Kept = {
  document: (Omit<KeptDocument, "payload"> & { payloads: Uint8Array[] }) | undefined;
  readonly pages: Map<object, Map<number, KeptEdit>>;
  readonly open: Set<object>;
};

export class MemoryStore implements EditStore {
  readonly #rooms = new Map<string, Kept>();
  /** Writes are rejected. */
  isFull = false;
  /** No request is answered. */
  isStuck = false;
  /** A room opens when this resolves. */
  opening: () => Promise<void> = () => Promise.resolve();
  /** Callbacks of the pages that have a room open. */
  readonly #lost = new Set<() => void>();
  /** Number of rows written. */
  written = 0;

  async open({ server, room, condense, lost = () => {} }: StoredRoom): Promise<RoomStore> {
    await this.#answer();
    await this.opening();
    const key = `${server} ${room}`;
    const kept: Kept = this.#rooms.get(key) ?? { document: undefined, pages: new Map(), open: new Set() };
    this.#rooms.set(key, kept);
    const page = {};
    const left = [...kept.pages].filter(([other]) => !kept.open.has(other));
    for (const [other] of left) kept.pages.delete(other);
    const edits = left
      .flatMap(([, rows]) => [...rows.values()].sort((a, b) => a.place - b.place))
      .map((edit, index) => ({ ...edit, place: index + 1 }));
    kept.pages.set(page, new Map(edits.map((edit) => [edit.place, edit])));
    kept.open.add(page);
    this.#lost.add(lost);
    const { document } = kept;
    return {
      kept: {
        document: document && condense && { position: document.position, last: document.last, payload: condense(document.payloads) },
        edits,
      },
      keep: async (change) => {
        if (!kept.open.has(page)) throw new Error("closed");
        await this.#answer();
        if (this.isFull) throw new Error("full");
        this.written += change.put.length;
        apply(kept, kept.pages.get(page)!, change);
      },
      forget: async () => {
        await this.#answer();
        kept.document = undefined;
        for (const rows of kept.pages.values()) rows.clear();
      },
      close: () => {
        kept.open.delete(page);
        this.#lost.delete(lost);
      },
    };
  }

  /** The store of one page. After `die` none of its requests takes effect, and other pages may take over its edits. */
  forPage(): EditStore & { die(): void } {
    let isDead = false;
    const stores: RoomStore[] = [];
    return {
      open: async (room) => {
        const { kept, keep, forget, close } = await this.open(room);
        stores.push({ kept, keep, forget, close });
        if (isDead) close();
        return {
          kept,
          close,
          forget: () => (isDead ? new Promise(() => {}) : forget()),
          keep: (change) => (isDead ? new Promise(() => {}) : keep(change)),
        };
      },
      die: () => {
        isDead = true;
        for (const store of stores) store.close();
      },
    };
  }

  /** The user of the device clears the browser's data. */
  clear(): void {
    for (const kept of this.#rooms.values()) {
      kept.document = undefined;
      for (const rows of kept.pages.values()) rows.clear();
    }
    for (const lost of this.#lost) lost();
  }

  async #answer(): Promise<void> {
    if (this.isStuck) await new Promise(() => {});
  }
}

function apply(kept: Kept, rows: Map<number, KeptEdit>, { put, drop, document }: KeptChange): void {
  for (const place of drop) rows.delete(place);
  for (const edit of put) rows.set(edit.place, edit);
  for (const change of document) {
    const before = kept.document;
    if (change.kind === "forgotten") {
      kept.document = undefined;
    } else if (change.kind === "begun") {
      if (before === undefined || change.position.seq > before.position.seq || change.position.epoch > before.position.epoch) {
        kept.document = { position: change.position, last: change.last, payloads: [change.payload] };
      }
    } else {
      const from = before?.position.seq ?? 0;
      if (from < change.after || change.position.seq <= from || change.position.epoch < (before?.position.epoch ?? 0)) continue;
      kept.document = {
        position: change.position,
        last: change.last,
        payloads: [...(before?.payloads ?? []), ...change.payloads.slice(from - change.after)],
      };
    }
  }
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const NOTES = "notes" as RoomId;

/** A server with Yjs documents. */
export function serverOn(): ModelServer {
  const server = new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });
  server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
  return server;
}

export function receivedFrames<Type extends ClientFrame["type"]>(server: ModelServer, type: Type): (ClientFrame & { type: Type })[] {
  return server.receivedFrames.filter((frame): frame is ClientFrame & { type: Type } => frame.type === type);
}

/** Length of each author's text in the log. */
export function lengthsInLog(server: ModelServer): number {
  return server.room(NOTES).head;
}
