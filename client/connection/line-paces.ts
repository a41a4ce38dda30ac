/**
 * How fast each kind of frame goes out over one line, and what of it has arrived: whoever has much on its way has a PING
 * sent, and the PONG says that the server has all that was sent before. An ack would say less: of edits alone, and a room
 * whose owner is gone has none for a while, which must not hold back the others. Rules LIP1 to LIP4.
 */

import type { Millis } from "../../shared/ids.ts";
import type { Limits } from "../../shared/wire/frames.ts";
import { Pace } from "../room/pace.ts";
import { FramePace } from "./frame-pace.ts";

/** due: a PING is to go out. asked: by the PING with this nonce, which is to be answered. */
type Asking = { readonly kind: "idle" } | { readonly kind: "due" } | { readonly kind: "asked"; readonly nonce: number };

export class LinePaces {
  /** Of edits, and of the bytes of all frames. */
  readonly edits: Pace;
  readonly presence: FramePace;
  readonly controls: FramePace;
  #asking: Asking = { kind: "idle" };

  constructor(limits: Limits, now: Millis) {
    const { presenceBurst, presencePerSecond, controlBurst, controlsPerSecond } = limits;
    this.edits = new Pace(limits, now);
    this.presence = new FramePace({ burst: presenceBurst, perSecond: presencePerSecond }, now);
    this.controls = new FramePace({ burst: controlBurst, perSecond: controlsPerSecond }, now);
  }

  /**
   * Whether a PING is to be sent: true once, until it is answered. Behind a PONG only for edits, which may all wait for the
   * next. Turns of the others come all the same, and what goes out then asks; one that is still to come would ask for ever.
   */
  takeAsking(behind: "frame" | "pong"): boolean {
    const paces = behind === "frame" ? this.#all : [this.edits];
    if (this.#asking.kind !== "idle" || !paces.some(({ asksSoon }) => asksSoon)) return false;
    this.#asking = { kind: "due" };
    return true;
  }

  /** A PING has gone out behind all that was sent, whatever it was for. Its answer says that it has arrived itself, too. */
  pinged(nonce: number): void {
    if (this.#asking.kind === "asked") return;
    this.#asking = { kind: "asked", nonce };
    for (const pace of this.#all) pace.asked();
  }

  /** Of a later PING it says no less. */
  receivePong(nonce: number, now: Millis): void {
    if (this.#asking.kind !== "asked" || nonce < this.#asking.nonce) return;
    this.#asking = { kind: "idle" };
    for (const pace of this.#all) pace.arrived(now);
  }

  get #all(): readonly (Pace | FramePace)[] {
    return [this.edits, this.presence, this.controls];
  }
}
