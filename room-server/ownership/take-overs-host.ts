/**
 * Takes over the rooms of a server that is gone, of which this one keeps a warm copy: all of them, each with one append.
 * Nobody tells it to, so nothing has to be asked or answered first. Two that do so at once are settled by the log.
 */

import type { Clock } from "../../shared/clock.ts";
import type { ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Replicas } from "./replicas-host.ts";
import type { RoomHost } from "./room-host.ts";

export type TakeOversParts = { readonly rooms: Pick<RoomHost, "takeOver">; readonly replicas: Pick<Replicas, "copiesOf"> };
export type TakeOversDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: RoomServerMetrics };

/** Claims under way at a time. */
const AT_ONCE = 128;

export class TakeOvers {
  readonly #parts: TakeOversParts;
  readonly #deps: TakeOversDeps;

  constructor(parts: TakeOversParts, deps: TakeOversDeps) {
    this.#parts = parts;
    this.#deps = deps;
  }

  /** Resolves once all of them are settled. */
  async receiveLost(server: ServerId): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    const rooms = this.#parts.replicas.copiesOf(server);
    if (rooms.length === 0) return;
    const begun = clock.now();
    let taken = 0;
    const waiting = rooms.values();
    const next = async (): Promise<void> => {
      for (const room of waiting) if (await this.#parts.rooms.takeOver(room, server)) taken += 1;
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
    metrics.takeOverSeconds.observe((clock.now() - begun) / 1_000);
    log.info({ server, rooms: rooms.length, taken, tookMs: clock.now() - begun }, "took over from a room server that is gone");
  }
}
