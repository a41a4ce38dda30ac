/**
 * Trims the logs of a partition's rooms in rounds, one room at a time, spread over the round: nobody waits for it, and
 * what busy rooms have to trim together everybody on this NATS would feel. What a round's rooms put into their histories
 * is read in one pass before, where that costs less. A round that takes longer than its time trims more seldom.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import { pause } from "../../shared/pause.ts";
import type { ReadAheadHost } from "./read-ahead-host.ts";
import type { RoomHost } from "./room-host.ts";

export type Trimmed = Pick<RoomHost, "room" | "isTrimDue" | "trimRange" | "trim">;
export type TrimsOptions = { readonly historySegmentMsMin: number };

const ROUND_MS_MIN = 100;

export class TrimsHost {
  readonly #rooms: ReadonlyMap<RoomKey, Trimmed>;
  readonly #ahead: Pick<ReadAheadHost, "read" | "forget">;
  readonly #clock: Clock;
  readonly #roundMs: number;

  /** `rooms`: as they are at any time. */
  constructor(
    rooms: ReadonlyMap<RoomKey, Trimmed>,
    ahead: Pick<ReadAheadHost, "read" | "forget">,
    { historySegmentMsMin }: TrimsOptions,
    clock: Clock,
  ) {
    this.#rooms = rooms;
    this.#ahead = ahead;
    this.#clock = clock;
    this.#roundMs = Math.max(ROUND_MS_MIN, historySegmentMsMin);
  }

  /** Until the signal, and the end of the trim that is under way. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const begun = this.#clock.now();
      const goesOn = await this.#round(
        [...this.#rooms.values()].filter((room) => room.isTrimDue(begun)),
        signal,
      );
      if (!goesOn) await this.#pauseUntil(begun + this.#roundMs, signal);
    }
  }

  /** Whether there is more to trim at once, and it can be trimmed. */
  async #round(due: readonly Trimmed[], signal: AbortSignal): Promise<boolean> {
    const ranges = await Promise.all(due.map((room) => room.trimRange()));
    const { ends, isCut } = await this.#ahead.read(
      ranges.filter((range) => range !== undefined),
      signal,
    );
    const apartMs = isCut ? 0 : this.#roundMs / due.length;
    let isAnyTrimmed = false;
    for (const room of due) {
      const begun = this.#clock.now();
      const end = ends.get(room.room);
      if (end === "next-round") continue;
      if (!signal.aborted && this.#isDueStill(room, begun)) isAnyTrimmed = (await room.trim(end)) || isAnyTrimmed;
      this.#ahead.forget(room.room);
      await this.#pauseUntil(begun + apartMs, signal);
    }
    return isCut && isAnyTrimmed;
  }

  /** Meanwhile it may be something else's turn, or another may have taken its place. */
  #isDueStill(room: Trimmed, now: Millis): boolean {
    return this.#rooms.get(room.room) === room && room.isTrimDue(now);
  }

  async #pauseUntil(time: number, signal: AbortSignal): Promise<void> {
    const ms = time - this.#clock.now();
    if (ms > 0) await pause(this.#clock, ms, signal);
  }
}
