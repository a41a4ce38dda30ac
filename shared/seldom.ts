/**
 * A map, a set and a list for what nearly always is empty, where there is one for each of very many: V8 sets about 150
 * bytes aside for an empty Map and 32 for an empty list, and a quiet room would have a dozen of them. These weigh
 * nothing to speak of until there is something to hold, and again once there is not.
 *
 * What is added to one that was emptied within a loop over it is not met by that loop.
 */

const NO_ENTRIES: ReadonlyMap<never, never> = new Map<never, never>();
const NO_MEMBERS: ReadonlySet<never> = new Set<never>();

/** For a field that holds a list: it is replaced by one of its own when there is something to add. */
export const NO_ITEMS: readonly never[] = Object.freeze([]);

export class SeldomMap<Key, Value> {
  #entries: Map<Key, Value> | undefined;

  get size(): number {
    return this.#entries === undefined ? 0 : this.#entries.size;
  }

  get(key: Key): Value | undefined {
    return this.#entries?.get(key);
  }

  has(key: Key): boolean {
    return this.#entries !== undefined && this.#entries.has(key);
  }

  set(key: Key, value: Value): void {
    (this.#entries ??= new Map()).set(key, value);
  }

  /** Whether it was there. */
  delete(key: Key): boolean {
    if (this.#entries === undefined || !this.#entries.delete(key)) return false;
    if (this.#entries.size === 0) this.#entries = undefined;
    return true;
  }

  clear(): void {
    this.#entries = undefined;
  }

  keys(): IterableIterator<Key> {
    return (this.#entries ?? NO_ENTRIES).keys();
  }

  values(): IterableIterator<Value> {
    return (this.#entries ?? NO_ENTRIES).values();
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return (this.#entries ?? NO_ENTRIES)[Symbol.iterator]();
  }
}

export class SeldomSet<Member> {
  #members: Set<Member> | undefined;

  get size(): number {
    return this.#members === undefined ? 0 : this.#members.size;
  }

  has(member: Member): boolean {
    return this.#members !== undefined && this.#members.has(member);
  }

  add(member: Member): void {
    (this.#members ??= new Set()).add(member);
  }

  /** Whether it was there. */
  delete(member: Member): boolean {
    if (this.#members === undefined || !this.#members.delete(member)) return false;
    if (this.#members.size === 0) this.#members = undefined;
    return true;
  }

  clear(): void {
    this.#members = undefined;
  }

  [Symbol.iterator](): IterableIterator<Member> {
    return (this.#members ?? NO_MEMBERS)[Symbol.iterator]();
  }
}
