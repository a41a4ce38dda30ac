/**
 * How far one client is behind: the number of bytes that it has not read, and the age of the oldest. The socket reports
 * how much is unread, but not since when. So the bytes sent between two checks form a batch, and batches leave at the
 * front as the client reads. Rules OUT1 to OUT6. Age is counted in checks, not by a clock: after a pause of the
 * gateway, clients must not count as slow.
 */

export type OutboundOptions = {
  readonly slowBytesMax: number;
  readonly slowMsMax: number;
  /** Interval between two checks. */
  readonly lookMs: number;
};

type Lot = { bytes: number; readonly look: number };

/** A client that reads more than it is sent is catching up, even if much is unread. Measured over this time. */
const CATCHING_UP_MS = 1_000;
/**
 * A kernel with a full buffer takes more only when a third of it is free. On a slow connection this is a megabyte, and
 * takes seconds.
 */
const CATCH_UP_PATIENCE = 10;

export class OutboundLag {
  readonly #options: OutboundOptions;
  readonly #lots: Lot[] = [];
  /** The unread bytes at the last checks, oldest first. */
  readonly #depths: number[] = [];
  #bytes = 0;
  #look = 0;

  constructor(options: OutboundOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Age of the oldest unread byte. */
  get ageMs(): number {
    const [oldest] = this.#lots;
    return oldest === undefined ? 0 : (this.#look - oldest.look) * this.#options.lookMs;
  }

  /** `sent`: bytes since the last check. `waiting`: bytes that the client has not read. */
  receiveCheck(sent: number, waiting: number): void {
    this.#look += 1;
    this.#add(sent);
    if (this.#bytes > waiting) this.#take(this.#bytes - waiting);
    else this.#add(waiting - this.#bytes); // Framing bytes are not counted when a frame is sent.
    this.#depths.push(waiting);
    if (this.#depths.length > CATCHING_UP_MS / this.#options.lookMs + 1) this.#depths.shift();
  }

  /**
   * Whether the client should be closed, and resume from its last seq. `isCatchingUp`: it receives the next answer once
   * it has read the last one, so little waits for it, and it may read in large steps.
   */
  isSlow(isCatchingUp = false): boolean {
    const { slowBytesMax, lookMs } = this.#options;
    const slowMsMax = this.#options.slowMsMax * (isCatchingUp ? CATCH_UP_PATIENCE : 1);
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
