/**
 * Keeps members out of a room without any edit until the application was asked for its first content. A member that
 * wrote earlier would be first, and the content would be refused. Once open, the gate never closes: after [none], a
 * member may write at any time.
 */

import type { Seq } from "../../shared/ids.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";

export class FirstContentGate {
  #state: "closed" | "asking" | "open" = "closed";

  get isAsking(): boolean {
    return this.#state === "asking";
  }

  /** Whether members have to wait. `head`: the room's head according to its owner. */
  keepsOut(head: Seq, effects: FollowedRoomEffect[]): boolean {
    if (head > 0) this.#state = "open";
    if (this.#state === "closed") {
      this.#state = "asking";
      effects.push({ kind: "request-content" });
    }
    return this.#state !== "open";
  }

  /** `isSettled`: the room has content, or the application has none. Otherwise the next join asks again. */
  receiveOutcome(isSettled: boolean): void {
    if (this.#state === "asking") this.#state = isSettled ? "open" : "closed";
  }
}
