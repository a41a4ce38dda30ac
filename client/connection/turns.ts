/**
 * One input at a time, each carried out whole. What a listener does while an effect is carried out (typing,
 * leaving) waits its turn, so that it cannot overtake the effects still to come.
 */
export class Turns<Input> {
  readonly #take: (input: Input) => void;
  readonly #waiting: Input[] = [];
  #taking = false;

  constructor(take: (input: Input) => void) {
    this.#take = take;
  }

  receive(input: Input): void {
    this.#waiting.push(input);
    if (this.#taking) return;
    this.#taking = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) this.#take(next);
    } finally {
      this.#taking = false;
    }
  }
}
