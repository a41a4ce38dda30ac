/**
 * Whether a client is in a room: out, refused, offline, waiting to join again, joining, live. While a room is joined
 * again, the result of the last join stays valid until the new JOINED.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { Epoch, Millis, Seq } from "../../shared/ids.ts";
import type { Channel, JoinRefusal } from "../../shared/wire/frames.ts";
import type { SharedLimits } from "./room-messages.ts";

/** The reason why the room is not joined, and the time of the next JOIN. */
export type JoinRetry = { readonly reason: JoinRefusal; readonly message: string; readonly until: Millis };

/** The result of a join. */
export type JoinResult = { readonly channel: Channel; readonly epoch: Epoch; readonly head: Seq };

export type JoinOptions = {
  /** A JOIN that is not answered within this time is sent again. */
  readonly joinMsMax: number;
  /** Maximum random addition to the delay that the server asks for, so that clients do not join at the same moment. */
  readonly joinJitterMs: number;
};

/** The server does not admit the client for now. */
type TemporaryRefusal = Pick<JoinRetry, "reason" | "message"> & { readonly retryAfterMs: number };

type JoinPhase =
  | { readonly kind: "out" }
  | { readonly kind: "refused" }
  | { readonly kind: "offline" }
  | { readonly kind: "waiting"; readonly connection: SharedLimits; readonly joinRetry: JoinRetry }
  | {
      readonly kind: "joining";
      readonly connection: SharedLimits;
      readonly until: Millis;
      readonly before: JoinResult | undefined;
      /** From the answer to the JOIN before this one. */
      readonly joinRetry: JoinRetry | undefined;
    }
  | { readonly kind: "live"; readonly connection: SharedLimits; readonly joined: JoinResult };

/** waiting: the server does not admit the client for now. */
export type RoomStatus = "disconnected" | "stopped" | "connecting" | "waiting" | "connected";

export class JoinState {
  readonly #options: JoinOptions;
  readonly #random: () => number;
  #state: JoinPhase = { kind: "out" };
  #heldChannel: Channel | undefined;
  #hasJoined = false;

  /** `random`: from 0 to 1. */
  constructor(options: JoinOptions, random: () => number) {
    this.#options = options;
    this.#random = random;
  }

  get status(): RoomStatus {
    switch (this.#state.kind) {
      case "out":
        return "disconnected";
      case "refused":
        return "stopped";
      case "offline":
        return "connecting";
      case "waiting":
        return "waiting";
      case "joining":
        if (this.#state.before !== undefined) return "connected";
        return this.#state.joinRetry === undefined ? "connecting" : "waiting";
      case "live":
        return "connected";
      default:
        return assertNever(this.#state);
    }
  }

  /** The connection over which the room is joined or being joined. */
  get connection(): SharedLimits | undefined {
    return "connection" in this.#state ? this.#state.connection : undefined;
  }

  /** The server has sent content of the room, or is about to. */
  get hasBegun(): boolean {
    return this.#hasJoined || this.connection !== undefined;
  }

  /** True: join the room as soon as there is a connection. */
  get needsConnection(): boolean {
    return this.#state.kind === "offline";
  }

  get isJoining(): boolean {
    return this.#state.kind === "joining";
  }

  /** Set while the client is in the room and no new JOIN is open. */
  get live(): { readonly connection: SharedLimits; readonly joined: JoinResult } | undefined {
    return this.#state.kind === "live" ? this.#state : undefined;
  }

  /** The result of the last join, as long as it is valid. */
  get joined(): JoinResult | undefined {
    if (this.#state.kind === "joining") return this.#state.before;
    return this.#state.kind === "live" ? this.#state.joined : undefined;
  }

  /** The channel that the server holds for this client, also while it refuses a new JOIN. */
  get heldChannel(): Channel | undefined {
    return this.#heldChannel;
  }

  /** The time at which the room is joined again. */
  get askAgainAt(): Millis | undefined {
    if (this.#state.kind === "waiting") return this.#state.joinRetry.until;
    return this.#state.kind === "joining" ? this.#state.until : undefined;
  }

  /** Set from the first temporary refusal until the room is joined or the connection is lost. */
  get joinRetry(): JoinRetry | undefined {
    return "joinRetry" in this.#state ? this.#state.joinRetry : undefined;
  }

  /** Also starts again after a refusal. */
  enter(): void {
    if (this.#state.kind === "out" || this.#state.kind === "refused") this.#state = { kind: "offline" };
  }

  ask(connection: SharedLimits, before: JoinResult | undefined, now: Millis): void {
    const until = (now + this.#options.joinMsMax) as Millis;
    this.#state = { kind: "joining", connection, before, until, joinRetry: this.joinRetry };
  }

  /** False: no JOIN was open. */
  receiveJoined(joined: JoinResult): boolean {
    if (this.#state.kind !== "joining") return false;
    this.#state = { kind: "live", connection: this.#state.connection, joined };
    this.#heldChannel = joined.channel;
    this.#hasJoined = true;
    return true;
  }

  /** Returns the delay of the next JOIN, and whether the reason differs from that of the refusal before. */
  wait({ reason, message, retryAfterMs }: TemporaryRefusal, now: Millis): { readonly retryInMs: number; readonly isNewReason: boolean } {
    assert(this.#state.kind === "joining", "only a JOIN is refused");
    const retryInMs = retryAfterMs + this.#random() * this.#options.joinJitterMs;
    const isNewReason = this.joinRetry?.reason !== reason;
    const joinRetry = { reason, message, until: (now + retryInMs) as Millis };
    this.#state = { kind: "waiting", connection: this.#state.connection, joinRetry };
    return { retryInMs, isNewReason };
  }

  /** `offline`: join again on the next connection. */
  end(kind: "out" | "refused" | "offline"): void {
    this.#state = { kind };
    this.#heldChannel = undefined;
  }
}
