/**
 * Something for each connection of a gateway, by its id. A Map of V8 has 46 bytes for each of ten thousand entries, and
 * copies all of them whenever it grows. Ids are given one after the other and those of one time mostly go with that time,
 * so they stand side by side in pages here, and a page goes with its last.
 */

import type { ConnectionId } from "./ports.ts";

/** Of larger ones too many would stay for one connection that outlives all of its time. */
const PAGE = 16;

type Page<Value> = (Value | undefined)[];

/** By page in the order in which the pages came, within one by id. What comes and goes during a loop may be met or not; whoever stays is, once. */
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

  /** Whether it was there. */
  delete(id: ConnectionId): boolean {
    const page = this.#pages.get(pageOf(id));
    if (page?.[id % PAGE] === undefined) return false;
    page[id % PAGE] = undefined;
    this.#size -= 1;
    if (page.every((value) => value === undefined)) this.#pages.delete(pageOf(id));
    return true;
  }

  forEach(receive: (value: Value, id: ConnectionId, all: ReadonlyMap<ConnectionId, Value>) => void): void {
    // Of all and often: `for of` would make an entry of each.
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
