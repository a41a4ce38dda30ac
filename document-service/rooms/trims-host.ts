/**
 * Trims the logs of a partition's rooms one at a time: nobody waits for it, and what busy rooms have to trim together
 * everybody on this NATS would feel. At 20 ms each that is enough for 3,000 rooms that are trimmed once a minute; with
 * more, each is trimmed more seldom.
 */

import type { Clock } from "../../shared/clock.ts";
import type { RoomHost } from "./room-host.ts";

export type Trimmed = Pick<RoomHost, "isTrimDue" | "trim">;

export class TrimsHost {
  readonly #clock: Pick<Clock, "now">;
  /** As of the last look, the next first. */
  #due: readonly Trimmed[] = [];
  #isTrimming = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Those to be trimmed as of now, in place of those before. */
  receiveDue(rooms: readonly Trimmed[]): void {
    this.#due = rooms;
    this.#next();
  }

  #next(): void {
    if (this.#isTrimming) return;
    const now = this.#clock.now();
    const at = this.#due.findIndex((room) => room.isTrimDue(now)); // Some may have been done, or have something else to do, since.
    if (at < 0) return;
    const room = this.#due[at]!;
    this.#due = this.#due.slice(at + 1);
    this.#isTrimming = true;
    void room.trim().finally(() => {
      this.#isTrimming = false;
      this.#next();
    });
  }
}
