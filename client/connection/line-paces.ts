/**
 * How fast each kind of frame goes out over one line, and what of it has arrived: whoever has much on its way has a PING
 * sent, and the PONG says that the server has all that was sent before. An ack would say less: of edits alone, and a room
 * whose owner is gone has none for a while, which must not hold back the others. Rules LIP1 to LIP3.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Limits } from "../../shared/wire/frames.ts";
import { Pace } from "../room/pace.ts";
import { FramePace } from "./frame-pace.ts";

export class LinePaces {
  /** Of edits, and of the bytes of all frames. */
  readonly edits: Pace;
  readonly presence: FramePace;
  readonly controls: FramePace;
  #isAsking = false;
  /** Of the PING that is to be answered. */
  #nonce: number | undefined;

  constructor(limits: Limits, now: Millis) {
    const { presenceBurst, presencePerSecond, controlBurst, controlsPerSecond } = limits;
    this.edits = new Pace(limits, now);
    this.presence = new FramePace({ burst: presenceBurst, perSecond: presencePerSecond }, now);
    this.controls = new FramePace({ burst: controlBurst, perSecond: controlsPerSecond }, now);
  }

  /** Whether a PING is to be sent: true once, until it is answered. */
  takeAsking(): boolean {
    if (this.#isAsking || !this.#all.some(({ asksSoon }) => asksSoon)) return false;
    this.#isAsking = true;
    return true;
  }

  /** A PING goes out behind all that was sent, whatever it was for. */
  pinged(nonce: number): void {
    if (this.#nonce !== undefined) return;
    this.#isAsking = true;
    this.#nonce = nonce;
    for (const pace of this.#all) pace.asked();
  }

  /** A later PING may have gone out in the place of the one that was asked by. */
  receivePong(nonce: number, now: Millis): void {
    if (this.#nonce === undefined || nonce < this.#nonce) return;
    this.#isAsking = false;
    this.#nonce = undefined;
    for (const pace of this.#all) pace.arrived(now);
  }

  get #all(): readonly (Pace | FramePace)[] {
    return [this.edits, this.presence, this.controls];
  }
}
