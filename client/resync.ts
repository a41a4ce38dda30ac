/**
 * The way back for a client that cannot be caught up edit by edit: fetch the room's snapshot, begin where it
 * ends. Says what to do next; the session does it. Rules RES1 to RES4.
 */

import { type Millis, type Position, START } from "../shared/ids.ts";
import { type Backoff, backoffMs } from "./backoff.ts";
import type { SnapshotAnswer } from "./ports.ts";

export type ResyncStep =
  /** Begin there, with what the snapshot holds. */
  | { readonly kind: "begin"; readonly position: Position; readonly payload: Uint8Array | undefined }
  | { readonly kind: "wait"; readonly until: Millis };

export class Resync {
  readonly #backoff: Backoff;
  readonly #unit: () => number;
  /** Since the room was last caught up. */
  #attempts = 0;

  constructor(backoff: Backoff, unit: () => number) {
    this.#backoff = backoff;
    this.#unit = unit;
  }

  /** When to fetch: at once, unless the last snapshot did not help. */
  begin(now: Millis): Millis {
    this.#attempts += 1;
    return this.#attempts === 1 ? now : this.#later(now);
  }

  receive(answer: SnapshotAnswer, now: Millis): ResyncStep {
    switch (answer.kind) {
      case "snapshot":
        return { kind: "begin", position: answer.position, payload: answer.payload };
      case "none":
        return { kind: "begin", position: START, payload: undefined }; // Nothing was trimmed yet: the log has it all.
      case "unavailable":
        this.#attempts += 1;
        return { kind: "wait", until: Math.max(now + answer.retryAfterMs, this.#later(now)) as Millis };
    }
  }

  caughtUp(): void {
    this.#attempts = 0;
  }

  #later(now: Millis): Millis {
    return (now + backoffMs(this.#backoff, this.#attempts, this.#unit())) as Millis;
  }
}
