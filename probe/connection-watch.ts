/** Watches one attempt to connect, from the request for a socket to its end, by the frames: whether it succeeded and how long it took. */

import type { Millis } from "../shared/ids.ts";
import { CLOSE, type CloseName } from "../shared/wire/close-codes.ts";
import { decodeFrame } from "../shared/wire/codec.ts";
import { FrameType } from "../shared/wire/frames.ts";
import type { FailureCause, Finding } from "./findings.ts";

type State = "opening" | "opened" | "welcomed" | "closed";

/** Only these frame types are decoded. For all others the first byte is enough. */
const WATCHED: ReadonlySet<number | undefined> = new Set([FrameType.ping, FrameType.pong, FrameType.welcome, FrameType["replay-request"]]);

export class ConnectionWatch {
  readonly #askedAt: Millis;
  #state: State = "opening";
  /** The unanswered PING. The SDK sends the next one only long afterwards. */
  #ping: { readonly nonce: number; readonly at: Millis } | undefined;

  constructor(askedAt: Millis) {
    this.#askedAt = askedAt;
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  receiveOpened(): void {
    if (this.#state === "opening") this.#state = "opened";
  }

  receiveSent(bytes: Uint8Array, now: Millis): Finding[] {
    if (!WATCHED.has(bytes[0])) return [];
    const frame = decodeFrame(bytes);
    if (frame?.type === "ping") this.#ping = { nonce: frame.nonce, at: now };
    return frame?.type === "replay-request" ? [{ kind: "gap" }] : [];
  }

  receiveReceived(bytes: Uint8Array, now: Millis): Finding[] {
    if (!WATCHED.has(bytes[0])) return [];
    const frame = decodeFrame(bytes);
    if (frame?.type === "welcome" && this.#state === "opened") {
      this.#state = "welcomed";
      return [{ kind: "first-message", ms: now - this.#askedAt }];
    }
    const ping = this.#ping;
    if (frame?.type !== "pong" || ping?.nonce !== frame.nonce) return [];
    this.#ping = undefined;
    return [{ kind: "round-trip", ms: now - ping.at }];
  }

  /** The end of an open connection is not a failed attempt. */
  receiveClosed(code: number): Finding[] {
    const before = this.#state;
    this.#state = "closed";
    if (before === "welcomed" || before === "closed") return [];
    return [{ kind: "connect-failed", cause: before === "opening" ? "unreachable" : causeOf(code) }];
  }
}

function causeOf(code: number): FailureCause {
  const named = Object.entries(CLOSE).find(([, close]) => close.code === code);
  return named === undefined ? "broken" : (named[0] as CloseName);
}
