/**
 * Entries by a key that each of them holds, where there is one of these for each of very many and nearly all have few
 * entries: a list that is looked through weighs half as much as a Map. Beyond a few there is a Map.
 */

export const FEW = 16;

export class Few<Key, Entry> {
  readonly #keyOf: (entry: Entry) => Key;
  #entries: Entry[] | Map<Key, Entry> = [];

  /** `keyOf`: the same function for all of a kind. */
  constructor(keyOf: (entry: Entry) => Key) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return Array.isArray(this.#entries) ? this.#entries.length : this.#entries.size;
  }

  get(key: Key): Entry | undefined {
    return Array.isArray(this.#entries) ? this.#entries[this.#placeOf(key, this.#entries)] : this.#entries.get(key);
  }

  has(key: Key): boolean {
    return this.get(key) !== undefined;
  }

  /** In the place of the one with the same key. */
  set(entry: Entry): void {
    const entries = this.#entries;
    const key = this.#keyOf(entry);
    if (!Array.isArray(entries)) return void entries.set(key, entry);
    const place = this.#placeOf(key, entries);
    if (place >= 0) entries[place] = entry;
    else if (entries.length < FEW)
      this.#entries = entries.concat([entry]); // push() would make room for sixteen more.
    else this.#entries = new Map([...entries, entry].map((each) => [this.#keyOf(each), each]));
  }

  /** The newest of those. Goes through all: for something else than the key, while there are few. */
  findLast(matches: (entry: Entry) => boolean): Entry | undefined {
    return (Array.isArray(this.#entries) ? this.#entries : [...this.#entries.values()]).findLast(matches);
  }

  /** Whether it was there. */
  delete(key: Key): boolean {
    const entries = this.#entries;
    if (!Array.isArray(entries)) return entries.delete(key);
    const place = this.#placeOf(key, entries);
    if (place >= 0) this.#entries = entries.toSpliced(place, 1);
    return place >= 0;
  }

  /** What comes and goes meanwhile may be met or not. */
  values(): IterableIterator<Entry> {
    return this.#entries.values();
  }

  /** -1: nowhere. */
  #placeOf(key: Key, entries: readonly Entry[]): number {
    for (let place = 0; place < entries.length; place++) if (this.#keyOf(entries[place]!) === key) return place;
    return -1;
  }
}
