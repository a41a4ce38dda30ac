/** What is done with one room, one thing at a time: any of it may fail as the world does, and waits for a moment then. */

import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import { Undecodable } from "../../shared/undecodable.ts";
import type { Document } from "./document.ts";
import { type IntakeHost, RETRY_MS, UNDECODABLE_RETRY_MS } from "./intake-host.ts";

export class WorkHost {
  readonly #room: RoomKey;
  readonly #intake: () => Pick<IntakeHost, "opened" | "isClosed">;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  #isBusy = false;
  #notBefore = 0 as Millis;

  /** `intake`: asked once there is something to do. */
  constructor(room: RoomKey, intake: () => Pick<IntakeHost, "opened" | "isClosed">, deps: { clock: Clock; log: Log }) {
    this.#room = room;
    this.#intake = intake;
    this.#deps = deps;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  isPausing(now: Millis): boolean {
    return now < this.#notBefore;
  }

  /** Nothing is due for a moment. */
  pause(ms = RETRY_MS): void {
    this.#notBefore = (this.#deps.clock.now() + ms) as Millis;
  }

  /** Where the room is closed before it was opened, nothing is done. `otherwise`: what is told of a failure. */
  async run(otherwise: string, work: (document: Document) => Promise<void>): Promise<void> {
    this.#isBusy = true;
    try {
      const document = await this.#intake().opened;
      if (document !== undefined) await work(document);
    } catch (cause) {
      this.receiveFailure(otherwise, cause);
    } finally {
      this.#isBusy = false;
    }
  }

  /** The world failed; what was to be done is due again after a moment. */
  receiveFailure(what: string, cause: unknown): void {
    unlessMistake(cause);
    this.pause(cause instanceof Undecodable ? UNDECODABLE_RETRY_MS : RETRY_MS);
    if (!this.#intake().isClosed) this.#deps.log.warn({ room: this.#room, cause }, `a room waits for its storage: ${what}`);
  }
}
