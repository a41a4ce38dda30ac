/**
 * The way back for a client that cannot be caught up edit by edit: fetch the room's snapshot, begin where it
 * ends. Says what to do next; the session does it. Rules RES1 to RES6.
 */

import { type Millis, type Position, START } from "../../shared/ids.ts";
import type { ResyncReason } from "../../shared/wire/frames.ts";
import { type Backoff, backoffMs } from "../connection/backoff.ts";
import type { EditName } from "../keeping/edit-store.ts";
import type { SnapshotAnswer } from "../ports.ts";

/** Where the room is to be joined anew, and what the snapshot holds up to there. */
export type Beginning = { readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array | undefined };

type State = { readonly kind: "idle" } | { readonly kind: "waiting"; readonly until: Millis } | { readonly kind: "fetching" };

export class Resync {
  readonly #backoff: Backoff;
  readonly #unit: () => number;
  #state: State = { kind: "idle" };
  /** Since the room was last caught up. */
  #attempts = 0;
  /** What this client holds is not of the server's log. */
  #rolledBack = false;

  /** `unit`: a number in [0, 1). */
  constructor(backoff: Backoff, unit: () => number) {
    this.#backoff = backoff;
    this.#unit = unit;
  }

  get active(): boolean {
    return this.#state.kind !== "idle";
  }

  get dueAt(): Millis | undefined {
    return this.#state.kind === "waiting" ? this.#state.until : undefined;
  }

  /** The snapshot is fetched at once, unless the last one did not help. */
  begin(reason: ResyncReason, now: Millis): void {
    this.#rolledBack = reason !== "too-old";
    this.#attempts += 1;
    this.#state = { kind: "waiting", until: this.#attempts === 1 ? now : this.#later(now) };
  }

  /** Whether to fetch it now. */
  takeDue(now: Millis): boolean {
    if (this.#state.kind !== "waiting" || now < this.#state.until) return false;
    this.#state = { kind: "fetching" };
    return true;
  }

  /** `held`: how far this client is. Undefined: it is fetched again later, or no longer needed. */
  receive(answer: SnapshotAnswer, held: Position, now: Millis): Beginning | undefined {
    if (this.#state.kind === "idle") return undefined;
    switch (answer.kind) {
      case "snapshot":
        return this.#beginAt(answer, held);
      case "none":
        return this.#beginAt({ position: START, payload: undefined }, held); // Nothing was trimmed yet: the log has it all.
      case "unavailable":
        this.#attempts += 1;
        this.#state = { kind: "waiting", until: Math.max(now + answer.retryAfterMs, this.#later(now)) as Millis };
        return undefined;
    }
  }

  /** The line is lost: the next join says what is needed. */
  abandon(): void {
    this.#state = { kind: "idle" };
  }

  caughtUp(): void {
    this.#attempts = 0;
  }

  /** A catch-up may break off after it has led beyond the newest snapshot: then the room goes on from there. */
  #beginAt({ position, last, payload }: Beginning, held: Position): Beginning {
    this.#state = { kind: "idle" };
    return this.#rolledBack || position.seq > held.seq ? { position, last, payload } : { position: held, payload: undefined };
  }

  #later(now: Millis): Millis {
    return (now + backoffMs(this.#backoff, this.#attempts, this.#unit())) as Millis;
  }
}
