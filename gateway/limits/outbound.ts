/**
 * How far one client is behind in taking what it is sent: in bytes, and in the age of the oldest that it has not
 * taken. The socket tells how much waits, never since when; so what was sent between two looks is kept as one lot,
 * and lots leave from the front as bytes are taken. Rules OUT1 to OUT6.
 *
 * Age is counted in looks and not by a clock: a gateway that stood still must not take its clients for slow.
 */

export type OutboundOptions = {
  readonly slowBytesMax: number;
  readonly slowMsMax: number;
  /** From one look to the next. */
  readonly lookMs: number;
};

type Lot = { bytes: number; readonly look: number };

/** A client that takes more than comes is catching up, however much it has before it. Judged over so long. */
const CATCHING_UP_MS = 1_000;

export class Outbound {
  readonly #options: OutboundOptions;
  readonly #lots: Lot[] = [];
  /** What waited at the last looks, oldest first. */
  readonly #depths: number[] = [];
  #bytes = 0;
  #look = 0;

  constructor(options: OutboundOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Of the oldest that waits. */
  get ageMs(): number {
    const [oldest] = this.#lots;
    return oldest === undefined ? 0 : (this.#look - oldest.look) * this.#options.lookMs;
  }

  /** `sent`: bytes since the last look. `waiting`: what the client has not taken of all that it was sent. */
  receiveLook(sent: number, waiting: number): void {
    this.#look += 1;
    this.#add(sent);
    if (this.#bytes > waiting) this.#take(this.#bytes - waiting);
    else this.#add(waiting - this.#bytes); // What goes around a frame is not counted as it is sent.
    this.#depths.push(waiting);
    if (this.#depths.length > CATCHING_UP_MS / this.#options.lookMs + 1) this.#depths.shift();
  }

  /** Whether it is to be closed, to resume from its last seq. */
  isSlow(): boolean {
    const { slowBytesMax, slowMsMax, lookMs } = this.#options;
    const [before] = this.#depths;
    if (before === undefined || this.#depths.length <= CATCHING_UP_MS / lookMs || this.#bytes < before) return false;
    return this.#bytes > slowBytesMax || this.ageMs > slowMsMax;
  }

  #add(bytes: number): void {
    if (bytes <= 0) return;
    this.#bytes += bytes;
    const newest = this.#lots.at(-1);
    if (newest?.look === this.#look) newest.bytes += bytes;
    else this.#lots.push({ bytes, look: this.#look });
  }

  #take(bytes: number): void {
    this.#bytes -= bytes;
    let left = bytes;
    for (let [oldest] = this.#lots; oldest !== undefined && left > 0; [oldest] = this.#lots) {
      const taken = Math.min(left, oldest.bytes);
      oldest.bytes -= taken;
      left -= taken;
      if (oldest.bytes === 0) this.#lots.shift();
    }
  }
}
