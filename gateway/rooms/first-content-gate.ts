/**
 * Keeps members out of a room without any edit until the application was asked for its first content. A member that
 * wrote earlier would be first, and the content would be refused. Once open, the gate never closes: after [none], a
 * member may write at any time. The first edit of any author opens it as well.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Seq } from "../../shared/ids.ts";
import type { FirstContentOutcome } from "./first-content-host.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";

export class FirstContentGate {
  /** `filled`: the log has an edit, which the room's owner or this gateway may not know yet. Members would see an empty room. */
  #state: "closed" | "asking" | "filled" | "open" = "closed";
  /** Members that were kept out wait without an open question to the owner. */
  #isRecallDue = false;

  get isAsking(): boolean {
    return this.#state === "asking";
  }

  /** Whether members have to wait. `head`: the room's head according to its owner. */
  keepsOut(head: Seq, effects: FollowedRoomEffect[]): boolean {
    this.receiveHead(head);
    if (this.#state === "closed") {
      this.#state = "asking";
      effects.push({ kind: "request-content" });
    }
    return this.#state !== "open";
  }

  receiveHead(head: Seq): void {
    if (head > 0) this.#change("open");
  }

  /** After a failure the next join asks again. */
  receiveOutcome(outcome: FirstContentOutcome): void {
    if (this.#state !== "asking") return;
    switch (outcome) {
      case "content":
        return this.#change("filled");
      case "none":
        return this.#change("open");
      case "failed":
        this.#state = "closed";
        return;
      default:
        assertNever(outcome);
    }
  }

  /** The new owner may have a log that lost its end. */
  receiveNewEpoch(): void {
    if (this.#state === "filled") this.#change("closed");
  }

  /** Members that waited for the first edit were rejected, or left. */
  receiveNobodyWaits(): void {
    if (this.#state === "filled") this.#state = "closed";
  }

  /** True once, after a change of state that may let the members in. */
  takeRecall(): boolean {
    const isDue = this.#isRecallDue;
    this.#isRecallDue = false;
    return isDue;
  }

  #change(to: "closed" | "filled" | "open"): void {
    this.#isRecallDue ||= this.#state === "asking" || this.#state === "filled";
    this.#state = to;
  }
}
