/**
 * Keeps members out of a room without any edit until the application was asked for its first content. A member that
 * wrote earlier would be first, and the content would be refused. Once open, the gate never closes: after [none], a
 * member may write at any time. An edit opens it too, whoever wrote it.
 */

import type { Seq } from "../../shared/ids.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";

export class FirstContentGate {
  #state: "closed" | "asking" | "open" = "closed";
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

  /** Another gateway may have written the content, or a backend the first edit. */
  receiveHead(head: Seq): void {
    if (head > 0) this.#open();
  }

  /** `isSettled`: the room has content, or the application has none. Otherwise the next join asks again. */
  receiveOutcome(isSettled: boolean): void {
    if (isSettled) this.#open();
    else if (this.#state === "asking") this.#state = "closed";
  }

  /** True once, after the gate opened for members that it kept out. */
  takeRecall(): boolean {
    const isDue = this.#isRecallDue;
    this.#isRecallDue = false;
    return isDue;
  }

  #open(): void {
    this.#isRecallDue ||= this.#state === "asking";
    this.#state = "open";
  }
}
