/**
 * The rooms of a partition that are not counted because their checkpoints cannot be understood: a newer version's, or
 * damaged. The others are; what came of these stays in the log and the activities, for when somebody has seen to it.
 */

import type { Clock } from "../../shared/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { pause } from "../../shared/pause.ts";
import { Undecodable } from "../../shared/undecodable.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { Checkpoints } from "../ports.ts";
import { Trouble } from "./trouble.ts";

/** How soon a checkpoint is looked at again. */
const LOOK_MS = 10_000;

export type AsideDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: Pick<LeaderboardMetrics, "aside"> };

export class AsideRooms {
  readonly #partition: number;
  readonly #checkpoints: Pick<Checkpoints, "mark" | "read">;
  readonly #deps: AsideDeps;
  readonly #rooms = new Set<RoomKey>();

  constructor(partition: number, checkpoints: Pick<Checkpoints, "mark" | "read">, deps: AsideDeps) {
    this.#partition = partition;
    this.#checkpoints = checkpoints;
    this.#deps = deps;
    this.#observe();
  }

  has(room: RoomKey): boolean {
    return this.#rooms.has(room);
  }

  add(room: RoomKey, cause: Undecodable): void {
    if (this.#rooms.has(room)) return;
    this.#rooms.add(room);
    this.#observe();
    this.#deps.log.error(
      { partition: this.#partition, room, cause },
      "a room is not counted, for its boards' checkpoint cannot be understood: run the version that wrote it, or restore it from a backup, or remove its entry; it is looked at again every few seconds",
    );
  }

  /** Throws once one of them can be understood: the pass that begins then counts it from the floor. */
  async expectUnreadable(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#deps.clock, LOOK_MS, signal);
      for (const room of this.#rooms) {
        if (!signal.aborted && (await this.#isReadable(room))) {
          throw new Trouble("stale", `the checkpoint of room ${room} can be understood again`);
        }
      }
    }
  }

  async #isReadable(room: RoomKey): Promise<boolean> {
    try {
      await this.#checkpoints.mark(room);
      await this.#checkpoints.read(room);
      return true;
    } catch (cause) {
      if (cause instanceof Undecodable) return false;
      throw cause;
    }
  }

  #observe(): void {
    this.#deps.metrics.aside.set({ partition: String(this.#partition) }, this.#rooms.size);
  }
}
