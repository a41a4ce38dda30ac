/**
 * Takes the values that a map has now in a number of turns, so that work for thousands of values is never one long block.
 * A value that is no longer in the map at its turn is left out.
 */

export class OneRound<Key, Value> {
  readonly #map: ReadonlyMap<Key, Value>;
  readonly #rest: [Key, Value][];
  readonly #perTurn: number;

  constructor(map: ReadonlyMap<Key, Value>, turns: number) {
    this.#map = map;
    this.#rest = [...map];
    this.#perTurn = Math.ceil(map.size / turns);
  }

  /** The round has no further turn. */
  get isDone(): boolean {
    return this.#rest.length === 0;
  }

  /** The values of the next turn. */
  take(): Value[] {
    const turn = this.#rest.splice(-this.#perTurn, this.#perTurn);
    return turn.filter(([key, value]) => this.#map.get(key) === value).map(([, value]) => value);
  }
}
