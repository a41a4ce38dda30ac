/**
 * How far the boards need a partition's log no more, from the leaderboards' lease on it. Read now and then:
 * the floor only rises, so one that is old keeps more, never less.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Leases } from "../../shared/lease.ts";
import type { Log } from "../../shared/log.ts";
import { pause, unlessMistake } from "../../shared/pause.ts";

const READ_MS = 2_000;

export class BoardsFloor {
  readonly #partition: number;
  readonly #leases: Pick<Leases, "read">;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  /** Until it is known everything is held. */
  #floor = 0;

  constructor(partition: number, leases: Pick<Leases, "read">, deps: { clock: Clock; log: Log }) {
    this.#partition = partition;
    this.#leases = leases;
    this.#deps = deps;
  }

  /** The stream sequence up to which everything is in the boards' checkpoints. Infinity: no leaderboard ever took part. */
  get floor(): number {
    return this.#floor;
  }

  async follow(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    while (!signal.aborted) {
      try {
        const { lease } = await this.#leases.read(this.#partition);
        this.#floor = lease?.floor ?? Number.POSITIVE_INFINITY;
      } catch (cause) {
        unlessMistake(cause);
        log.debug({ partition: this.#partition, cause }, "how far the boards are could not be read; the log is kept as long as it was");
      }
      await pause(clock, READ_MS, signal);
    }
  }
}
