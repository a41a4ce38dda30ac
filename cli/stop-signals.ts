/**
 * What a signal to a process asks for. One Ctrl-C comes twice under `npm start`: from the terminal, which tells every
 * process in it, and from npm, which passes its own on. So only a signal that comes later asks to end at once.
 */

import type { Millis } from "../shared/ids.ts";

/** Of one key press, on a machine with much to do; nobody waits for less before pressing again. */
export const SAME_SIGNAL_MS = 1_000;

export class StopSignals {
  #first: Millis | undefined;

  receive(now: Millis): "stop" | "nothing" | "end-at-once" {
    if (this.#first === undefined) {
      this.#first = now;
      return "stop";
    }
    return now - this.#first < SAME_SIGNAL_MS ? "nothing" : "end-at-once";
  }
}
