/**
 * A map for very many instances with few entries each. Each entry contains its key. A list that is searched takes half
 * of a Map's memory. Above a few entries it becomes a Map.
 */

export const SMALL_MAP_ENTRIES_MAX = 16;

export class SmallMap<Key, Entry> {
  readonly #keyOf: (entry: Entry) => Key;
  #entries: Entry[] | Map<Key, Entry> = [];

  /** `keyOf`: the same function for all instances of a kind. */
  constructor(keyOf: (entry: Entry) => Key) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return Array.isArray(this.#entries) ? this.#entries.length : this.#entries.size;
  }

  get(key: Key): Entry | undefined {
    return Array.isArray(this.#entries) ? this.#entries[this.#indexOf(key, this.#entries)] : this.#entries.get(key);
  }

  has(key: Key): boolean {
    return this.get(key) !== undefined;
  }

  /** Replaces the entry with the same key. */
  set(entry: Entry): void {
    const entries = this.#entries;
    const key = this.#keyOf(entry);
    if (!Array.isArray(entries)) return void entries.set(key, entry);
    const place = this.#indexOf(key, entries);
    if (place >= 0) entries[place] = entry;
    else if (entries.length < SMALL_MAP_ENTRIES_MAX)
      this.#entries = entries.concat([entry]); // push() would reserve space for sixteen more.
    else this.#entries = new Map([...entries, entry].map((each) => [this.#keyOf(each), each]));
  }

  /** All matches, the newest last. Searches all entries, so it suits conditions other than the key, and few entries. */
  filter(matches: (entry: Entry) => boolean): Entry[] {
    return this.#list().filter(matches);
  }

  /** The newest match, searched like `filter`. */
  findLast(matches: (entry: Entry) => boolean): Entry | undefined {
    return this.#list().findLast(matches);
  }

  /** Whether it was present. */
  delete(key: Key): boolean {
    const entries = this.#entries;
    if (!Array.isArray(entries)) return entries.delete(key);
    const place = this.#indexOf(key, entries);
    if (place >= 0) this.#entries = entries.toSpliced(place, 1);
    return place >= 0;
  }

  /** Entries added or removed during iteration may or may not be seen. */
  values(): IterableIterator<Entry> {
    return this.#entries.values();
  }

  #list(): readonly Entry[] {
    return Array.isArray(this.#entries) ? this.#entries : [...this.#entries.values()];
  }

  /** -1: nowhere. */
  #indexOf(key: Key, entries: readonly Entry[]): number {
    for (let place = 0; place < entries.length; place++) if (this.#keyOf(entries[place]!) === key) return place;
    return -1;
  }
}
