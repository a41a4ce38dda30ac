/**
 * One line to the server, for as long as it is wanted: token, socket, HELLO, pings, and back again after whatever
 * ended it. The close code alone decides whether and how to come back. Deterministic. Rules CON1 to CON21.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis } from "../../shared/ids.ts";
import { CLOSE, meaningOfClose, reconnectAfterClose } from "../../shared/wire/close-codes.ts";
import { type Limits, PROTOCOL_VERSION, type ServerFrame, type UnknownFrame } from "../../shared/wire/frames.ts";
import { backoffMs } from "./backoff.ts";
import type { ConnectionEffect, ConnectionInput, LineStatus, Waiting } from "./connection-messages.ts";
import { connectionRefused, presenceTooLarge, type Refusal, socketForbidden, tokenExpired } from "../room/problems.ts";
import { Retry, type RetryOptions } from "./retry.ts";

export type ConnectionOptions = RetryOptions & {
  readonly agent: string;
  /** Whether asking for a token again may bring another. */
  readonly tokenIsFixed: boolean;
  readonly tokenMsMax: number;
  /** A new token is asked for when the one in use has lived so much of the time it was given. */
  readonly renewShare: number;
  /** However short tokens live, they are not asked for more often. */
  readonly renewMsMin: number;
  readonly openMsMax: number;
  /** A line that held for so long was healthy: the first attempt after it comes quickly. */
  readonly healthyAfterMs: number;
};

/** idle: not wanted. waiting: between two attempts. refused: given up until asked to connect again. */
type State =
  | { readonly kind: "idle" }
  | { readonly kind: "refused" }
  | ({ readonly kind: "waiting" } & Waiting)
  | { readonly kind: "asking-token"; readonly until: Millis }
  | { readonly kind: "opening"; readonly token: string; readonly until: Millis }
  | { readonly kind: "greeting"; readonly until: Millis }
  | {
      readonly kind: "open";
      readonly limits: Limits;
      readonly since: Millis;
      heardAt: Millis;
      pingAt: Millis;
      moveAt: Millis | undefined;
      isDegraded: boolean;
      /** The gateway said so. */
      isGoingAway: boolean;
      renewAt: Millis | undefined;
      /** Of the token function, in a row. */
      renewFailures: number;
    };

type OpenState = State & { kind: "open" };

const TOKEN_FAILED = "the application's token function failed or took too long";

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #retry: Retry;
  readonly #unit: () => number;
  #state: State = { kind: "idle" };
  #pings = 0;
  /** What the last ERROR frame said: the reason behind the close that follows. */
  #said: (ServerFrame & { type: "error" }) | undefined;

  /** `unit`: a number in [0, 1). */
  constructor(options: ConnectionOptions, unit: () => number) {
    this.#options = options;
    this.#retry = new Retry(options, unit);
    this.#unit = unit;
  }

  get status(): LineStatus {
    switch (this.#state.kind) {
      case "idle":
        return "disconnected";
      case "refused":
        return "stopped";
      case "waiting":
        return "waiting";
      case "asking-token":
      case "opening":
      case "greeting":
        return "connecting";
      case "open":
        return this.#state.isDegraded ? "degraded" : "connected";
      default:
        return assertNever(this.#state);
    }
  }

  /** Undefined: it does not wait to try again. */
  get waiting(): Waiting | undefined {
    return this.#state.kind === "waiting" ? this.#state : undefined;
  }

  /** Frames go both ways. */
  get isOpen(): boolean {
    return this.#state.kind === "open";
  }

  /** When a tick is next needed. */
  get dueAt(): Millis | undefined {
    const state = this.#state;
    switch (state.kind) {
      case "waiting":
      case "asking-token":
      case "opening":
      case "greeting":
        return state.until;
      case "open":
        return Math.min(
          state.pingAt,
          state.moveAt ?? Infinity,
          state.renewAt ?? Infinity,
          state.heardAt + state.limits.silenceMsMax,
        ) as Millis;
      case "idle":
      case "refused":
        return undefined;
      default:
        return assertNever(state);
    }
  }

  receive(input: ConnectionInput, now: Millis): ConnectionEffect[] {
    switch (input.kind) {
      case "connect":
        return ["idle", "refused", "waiting"].includes(this.#state.kind) ? this.#attempt(now) : [];
      case "disconnect":
        this.#retry.healthy();
        return this.#end({ kind: "idle" });
      case "token":
        if (this.#state.kind === "open") return [{ kind: "send", frame: { type: "renew", token: input.token } }];
        if (this.#state.kind !== "asking-token") return [];
        this.#state = { kind: "opening", token: input.token, until: this.#openUntil(now) };
        return [{ kind: "open-socket" }];
      case "token-failed":
        return this.#receiveTokenFailed(input.cause, now);
      case "socket-opened":
        return this.#state.kind === "opening" ? this.#greet(this.#state.token, now) : [];
      case "socket-forbidden":
        return this.#giveUp(socketForbidden());
      case "socket-closed":
        return this.#receiveClosed(input, now);
      case "frame":
        return [...this.#hearOn(input.frame), ...this.#receiveFrame(input.frame, now)];
      case "tick":
        return this.#receiveTick(now);
      default:
        return assertNever(input);
    }
  }

  #attempt(now: Millis): ConnectionEffect[] {
    this.#state = { kind: "asking-token", until: (now + this.#options.tokenMsMax) as Millis };
    this.#said = undefined;
    this.#retry.attempted();
    return [{ kind: "ask-token" }];
  }

  #greet(token: string, now: Millis): ConnectionEffect[] {
    this.#state = { kind: "greeting", until: this.#openUntil(now) };
    return [{ kind: "send", frame: { type: "hello", version: PROTOCOL_VERSION, token, agent: this.#options.agent } }];
  }

  #receiveTokenFailed(cause: unknown, now: Millis): ConnectionEffect[] {
    if (this.#state.kind === "open") this.#renewLater(this.#state, now);
    else if (this.#state.kind === "asking-token") this.#wait(TOKEN_FAILED, now);
    else return [];
    return [{ kind: "problem", problem: { kind: "token-failed", message: `${TOKEN_FAILED}; it is asked again later`, cause } }];
  }

  /** An ERROR that something comes after was about no close. Of frames too large it is then what a room was to show. */
  #hearOn(frame: ServerFrame | UnknownFrame | undefined): ConnectionEffect[] {
    const before = this.#said;
    this.#said = frame?.type === "error" ? frame : undefined;
    if (frame === undefined || this.#state.kind !== "open" || before?.code !== CLOSE.frameTooLarge.code) return [];
    return [{ kind: "problem", problem: presenceTooLarge(this.#state.limits.presenceBytesMax) }];
  }

  #receiveFrame(frame: ServerFrame | UnknownFrame | undefined, now: Millis): ConnectionEffect[] {
    const state = this.#state;
    if (state.kind === "open") state.heardAt = now;
    if (frame === undefined) {
      return this.#giveUp(connectionRefused(CLOSE.badFrame.code, "the server sent bytes that are no frame: it may speak another protocol"));
    }
    if (frame.type === "retry-later") this.#retry.asked(frame.retryAfterMs);
    if (frame.type === "going-away" && state.kind === "open") {
      state.moveAt = (now + frame.reconnectAfterMs) as Millis;
      state.isGoingAway = true;
    }
    if (frame.type === "degraded" && state.kind === "open") return receiveDegraded(state, frame, now);
    if (frame.type === "renewed" && state.kind === "open") {
      state.renewAt = this.#renewAt(frame.tokenExpiresInMs, now);
      state.renewFailures = 0;
    }
    if (frame.type !== "welcome" || state.kind !== "greeting") return [];
    const { limits, tokenExpiresInMs } = frame;
    this.#state = {
      kind: "open",
      limits,
      since: now,
      heardAt: now,
      pingAt: (now + limits.pingIntervalMs) as Millis,
      moveAt: undefined,
      isDegraded: false,
      isGoingAway: false,
      renewAt: this.#renewAt(tokenExpiresInMs, now),
      renewFailures: 0,
    };
    return [{ kind: "line-open", limits }];
  }

  #receiveClosed({ code, why }: ConnectionInput & { kind: "socket-closed" }, now: Millis): ConnectionEffect[] {
    const { kind } = this.#state;
    if (kind !== "opening" && kind !== "greeting" && kind !== "open") return [];
    const said =
      kind === "opening"
        ? unreachable(why)
        : `${this.#said?.message ?? meaningOfClose(code) ?? why ?? "the connection was lost"} (close code ${code})`;
    const reconnect = reconnectAfterClose(code);
    switch (reconnect) {
      case "never":
        return this.#giveUp(connectionRefused(code, this.#said?.message));
      case "with-new-token":
        return this.#options.tokenIsFixed ? this.#giveUp(tokenExpired()) : this.#breakOff(said, now);
      case "when-told":
        this.#retry.banned();
        return this.#breakOff(said, now);
      case "now":
      case "after-backoff":
        return this.#breakOff(said, now);
      default:
        return assertNever(reconnect);
    }
  }

  #receiveTick(now: Millis): ConnectionEffect[] {
    const state = this.#state;
    switch (state.kind) {
      case "waiting":
        return now < state.until ? [] : this.#attempt(now);
      case "asking-token":
        return now < state.until ? [] : this.#receiveTokenFailed(undefined, now);
      case "opening":
      case "greeting":
        return now < state.until ? [] : this.#breakOff(`the server did not answer within ${this.#options.openMsMax} ms`, now);
      case "open": {
        if (now - state.heardAt >= state.limits.silenceMsMax) {
          return this.#breakOff(`nothing was heard of the server for ${state.limits.silenceMsMax} ms`, now);
        }
        return [...this.#moveIfDue(state, now), ...this.#renewIfDue(state, now), ...this.#pingIfDue(state, now)];
      }
      case "idle":
      case "refused":
        return [];
      default:
        return assertNever(state);
    }
  }

  #moveIfDue(state: OpenState, now: Millis): ConnectionEffect[] {
    if (state.moveAt === undefined || now < state.moveAt) return [];
    state.moveAt = undefined;
    return [{ kind: "move" }];
  }

  /** Asks again as long as nothing comes of it; once the token has expired the server ends the line. */
  #renewIfDue(state: OpenState, now: Millis): ConnectionEffect[] {
    if (state.renewAt === undefined || now < state.renewAt) return [];
    state.renewAt = (now + this.#options.tokenMsMax) as Millis;
    return [{ kind: "ask-token" }];
  }

  /** Whatever gives the tokens may be down, and many ask for one. */
  #renewLater(state: OpenState, now: Millis): void {
    const { renewMsMin, backoff } = this.#options;
    state.renewFailures += 1;
    state.renewAt = (now + Math.max(renewMsMin, backoffMs(backoff, state.renewFailures, this.#unit()))) as Millis;
  }

  #renewAt(tokenExpiresInMs: number, now: Millis): Millis | undefined {
    const { tokenIsFixed, renewShare, renewMsMin } = this.#options;
    return tokenIsFixed ? undefined : ((now + Math.max(renewMsMin, tokenExpiresInMs * renewShare)) as Millis);
  }

  #pingIfDue(state: OpenState, now: Millis): ConnectionEffect[] {
    if (now < state.pingAt) return [];
    state.pingAt = (now + state.limits.pingIntervalMs) as Millis;
    this.#pings += 1;
    return [{ kind: "send", frame: { type: "ping", nonce: this.#pings } }];
  }

  /** The line is no more, and is wanted still. */
  #breakOff(why: string, now: Millis): ConnectionEffect[] {
    if (this.#state.kind === "open" && now - this.#state.since >= this.#options.healthyAfterMs) this.#retry.healthy();
    const lost = this.#end({ kind: "idle" });
    this.#wait(why, now);
    return lost;
  }

  #giveUp(refusal: Refusal): ConnectionEffect[] {
    return [...this.#end({ kind: "refused" }), { kind: "refused", refusal }];
  }

  #end(next: State): ConnectionEffect[] {
    const state = this.#state;
    this.#state = next;
    switch (state.kind) {
      case "opening":
      case "greeting":
        return [{ kind: "close-socket" }];
      case "open":
        return [{ kind: "close-socket" }, { kind: "line-lost", heardAt: state.heardAt }];
      case "idle":
      case "refused":
      case "waiting":
      case "asking-token":
        return [];
      default:
        return assertNever(state);
    }
  }

  #wait(why: string, now: Millis): void {
    this.#state = { kind: "waiting", why, until: (now + this.#retry.nextMs()) as Millis };
  }

  #openUntil(now: Millis): Millis {
    return (now + this.#options.openMsMax) as Millis;
  }
}

function unreachable(why: string | undefined): string {
  return `the server cannot be reached: ${why ?? "the browser's console says why"}. Is the address right, and does a gateway answer there?`;
}

/** Nobody moves twice: told again, it keeps to the first time. A gateway that goes away is not stayed with. */
function receiveDegraded(
  state: OpenState,
  { backbone, reconnectAfterMs }: ServerFrame & { type: "degraded" },
  now: Millis,
): ConnectionEffect[] {
  const wasDegraded = state.isDegraded;
  state.isDegraded = backbone === "lost";
  if (state.isDegraded && !wasDegraded) state.moveAt ??= (now + reconnectAfterMs) as Millis;
  if (state.isDegraded || !wasDegraded || state.isGoingAway) return [];
  state.moveAt = undefined;
  return [{ kind: "stay" }];
}
