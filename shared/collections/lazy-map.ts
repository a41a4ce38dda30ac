/**
 * A map, a set and a list for very many instances that are nearly always empty. V8 reserves about 150 bytes for an
 * empty Map and 32 for an empty array. These collections cost almost nothing while they are empty. If one is emptied
 * during iteration, the loop does not see entries that are added afterwards.
 */

const NO_ENTRIES: ReadonlyMap<never, never> = new Map<never, never>();
const NO_MEMBERS: ReadonlySet<never> = new Set<never>();

/** The initial value of a field that holds a list. It is replaced by a new list when there is an entry. */
export const NO_ITEMS: readonly never[] = Object.freeze([]);

export class LazyMap<Key, Value> {
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

  /** Whether it was present. */
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

export class LazySet<Member> {
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

  /** Whether it was present. */
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
