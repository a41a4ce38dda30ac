/**
 * How users are called, told together a moment after they are let in: whole rooms come back at once, and one by one
 * each name would be a write to NATS of its own, which costs more than all else that a join does.
 */

import { type BoardName, BOARD_NAMES_MAX } from "../../shared/bus/board-messages.ts";
import type { Clock } from "../../shared/clock.ts";

/** Shorter than anybody needs to come onto a board that is shown. */
const GATHER_MS = 100;

export class UntoldNames {
  readonly #clock: Pick<Clock, "after">;
  readonly #tell: (names: readonly BoardName[]) => void;
  /** By room and user: of two names the later one is told. */
  readonly #untold = new Map<string, BoardName>();
  #callOff: () => void = () => {};

  /** `tell` is given 1 to `BOARD_NAMES_MAX`. */
  constructor(clock: Pick<Clock, "after">, tell: (names: readonly BoardName[]) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  add(name: BoardName): void {
    if (this.#untold.size === 0) this.#callOff = this.#clock.after(GATHER_MS, () => this.tellAll());
    this.#untold.set(`${name.room} ${name.user}`, name);
    if (this.#untold.size === BOARD_NAMES_MAX) this.tellAll();
  }

  tellAll(): void {
    this.#callOff();
    const names = [...this.#untold.values()];
    this.#untold.clear();
    if (names.length > 0) this.#tell(names);
  }
}
