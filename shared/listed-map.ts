/**
 * A map from a key that stands in the value itself, in the order in which they came. While it is short it is a list that
 * is looked through: a Map of a handful weighs four times as much, and there is one for each of very many rooms.
 */

/** One more, and it is a Map for good. */
const LISTED_MAX = 16;

export class ListedMap<Key, Value> {
  readonly #keyOf: (value: Value) => Key;
  #values: readonly Value[] | Map<Key, Value> = [];

  constructor(keyOf: (value: Value) => Key) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#values instanceof Map ? this.#values.size : this.#values.length;
  }

  get(key: Key): Value | undefined {
    return this.#values instanceof Map ? this.#values.get(key) : this.#values.find((value) => this.#keyOf(value) === key);
  }

  /** One whose key is not there yet. */
  add(value: Value): void {
    if (this.#values instanceof Map) this.#values.set(this.#keyOf(value), value);
    else if (this.#values.length < LISTED_MAX) this.#values = this.#values.concat([value]); // push(), and spreading, would make room for sixteen more.
    else this.#values = new Map([...this.#values, value].map((each) => [this.#keyOf(each), each]));
  }

  delete(key: Key): void {
    if (this.#values instanceof Map) this.#values.delete(key);
    else this.#values = this.#values.filter((value) => this.#keyOf(value) !== key);
  }

  some(isSo: (value: Value) => boolean): boolean {
    return this.#values instanceof Map ? [...this.#values.values()].some(isSo) : this.#values.some(isSo);
  }

  [Symbol.iterator](): IterableIterator<Value> {
    return this.#values.values();
  }
}
