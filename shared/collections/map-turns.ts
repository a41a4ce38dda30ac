/**
 * Takes the values of a map in turns, so that work for thousands of values is never one long block. Values may come and
 * go between two turns. A value that stays is taken once in a round.
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
