/**
 * Takes the values of a map in turns without end, so that work for thousands of values is never one long block. A value is
 * taken about once in a round: somewhat earlier or later while other values come and go.
 */

export class MapTurns<Value> {
  readonly #values: ReadonlyMap<unknown, Value>;
  readonly #turnsPerRound: number;
  #rest: Iterator<Value>;
  /** Each turn adds the number of values, and each value taken subtracts the turns of a round. */
  #credit = 0;

  constructor(values: ReadonlyMap<unknown, Value>, turnsPerRound: number) {
    this.#values = values;
    this.#turnsPerRound = turnsPerRound;
    this.#rest = values.values();
  }

  /** The values of the next turn. */
  take(): Value[] {
    const taken: Value[] = [];
    this.#credit += this.#values.size;
    for (; this.#credit >= this.#turnsPerRound; this.#credit -= this.#turnsPerRound) {
      let next = this.#rest.next();
      if (next.done === true) next = (this.#rest = this.#values.values()).next();
      if (next.done !== true) taken.push(next.value);
    }
    return taken;
  }
}
