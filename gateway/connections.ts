/**
 * A map from connection id to a value. A Map of V8 takes 46 bytes for each of ten thousand entries, and copies all
 * entries when it grows. Ids are consecutive, and connections that began together mostly end together. So values are
 * stored in pages, and a page is freed with its last value.
 */

import type { ConnectionId } from "./ports.ts";

/** A larger page would stay allocated too long for one connection that outlives its neighbours. */
const PAGE = 16;

type Page<Value> = (Value | undefined)[];

/**
 * Iterates pages in the order of their creation, and ids within a page. An entry that is added or removed during a loop
 * may be visited or not; every other entry is visited once.
 */
export class Connections<Value extends object> implements ReadonlyMap<ConnectionId, Value> {
  readonly #pages = new Map<number, Page<Value>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: ConnectionId): Value | undefined {
    return this.#pages.get(pageOf(id))?.[id % PAGE];
  }

  has(id: ConnectionId): boolean {
    return this.get(id) !== undefined;
  }

  set(id: ConnectionId, value: Value): void {
    let page = this.#pages.get(pageOf(id));
    if (page === undefined) this.#pages.set(pageOf(id), (page = Array.from<Value | undefined>({ length: PAGE })));
    if (page[id % PAGE] === undefined) this.#size += 1;
    page[id % PAGE] = value;
  }

  /** Returns whether the entry existed. */
  delete(id: ConnectionId): boolean {
    const page = this.#pages.get(pageOf(id));
    if (page?.[id % PAGE] === undefined) return false;
    page[id % PAGE] = undefined;
    this.#size -= 1;
    if (page.every((value) => value === undefined)) this.#pages.delete(pageOf(id));
    return true;
  }

  forEach(receive: (value: Value, id: ConnectionId, all: ReadonlyMap<ConnectionId, Value>) => void): void {
    // Runs often over all connections: `for of` would allocate an array per entry.
    this.#pages.forEach((page, number) => {
      for (let place = 0; place < PAGE; place++) {
        const value = page[place];
        if (value !== undefined) receive(value, idOf(number, place), this);
      }
    });
  }

  *entries(): MapIterator<[ConnectionId, Value]> {
    for (const [number, page] of this.#pages)
      for (let place = 0; place < PAGE; place++) {
        const value = page[place];
        if (value !== undefined) yield [idOf(number, place), value];
      }
  }

  *keys(): MapIterator<ConnectionId> {
    for (const [id] of this.entries()) yield id;
  }

  *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): MapIterator<[ConnectionId, Value]> {
    return this.entries();
  }
}

function pageOf(id: ConnectionId): number {
  return Math.floor(id / PAGE);
}

function idOf(page: number, place: number): ConnectionId {
  return (page * PAGE + place) as ConnectionId;
}
