/** Works on entries in order, a limited number of them concurrently. */

export class WorkQueue<Entry> {
  readonly #entries: readonly Entry[];
  readonly #underWayMax: number;
  readonly #underWay = new Set<Entry>();
  #next = 0;

  constructor(entries: readonly Entry[], underWayMax: number) {
    this.#entries = entries;
    this.#underWayMax = underWayMax;
  }

  get isOver(): boolean {
    return this.#underWay.size === 0 && this.#next >= this.#entries.length;
  }

  has(entry: Entry): boolean {
    return this.#underWay.has(entry);
  }

  /** Starts entries until the maximum is in progress. `start` returns whether the entry is in progress; otherwise it is already done. */
  advance(start: (entry: Entry) => boolean): void {
    while (this.#underWay.size < this.#underWayMax && this.#next < this.#entries.length) {
      const entry = this.#entries[this.#next++]!;
      this.#underWay.add(entry);
      if (!start(entry)) this.#underWay.delete(entry);
    }
  }

  /** The entry is done. */
  finish(entry: Entry): void {
    this.#underWay.delete(entry);
  }
}
