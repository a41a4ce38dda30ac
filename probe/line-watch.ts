/** One attempt at a line, from asking for a socket to its end, as the bytes on it tell: whether it came about, and how quick it is. */

import type { Millis } from "../shared/ids.ts";
import { CLOSE, type CloseName } from "../shared/wire/close-codes.ts";
import { decodeFrame } from "../shared/wire/codec.ts";
import { FrameType } from "../shared/wire/frames.ts";
import type { FailureCause, Finding } from "./findings.ts";

type State = "opening" | "opened" | "welcomed" | "closed";

/** Looked into; all others cost a byte to tell. */
const WATCHED: ReadonlySet<number | undefined> = new Set([FrameType.ping, FrameType.pong, FrameType.welcome, FrameType["replay-request"]]);

export class LineWatch {
  readonly #askedAt: Millis;
  #state: State = "opening";
  /** Not answered yet; the SDK sends the next when that was long ago. */
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

  /** A line that was there and ends is no failed attempt. */
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
