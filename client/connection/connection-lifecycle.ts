/**
 * The life of a connection to the server: token, socket, HELLO, open (`open-connection.ts`), and the next attempt after
 * a failure. Only the close code decides whether and when to reconnect. Deterministic. Rules CON1 to CON30.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis } from "../../shared/ids.ts";
import { CLOSE, isGatewayClose, reconnectAfterClose } from "../../shared/wire/close-codes.ts";
import { PROTOCOL_VERSION, type ServerFrame, type UnknownFrame } from "../../shared/wire/frames.ts";
import type { NetworkChange } from "../ports.ts";
import { connectionRefused, presenceTooLarge, type Refusal, socketForbidden, tokenExpired } from "../room/problems.ts";
import type { ConnectionEffect, ConnectionInput, ConnectionStatus, RetryWait } from "./connection-messages.ts";
import { OpenConnection, type OpenConnectionOptions } from "./open-connection.ts";
import { Retry, type RetryCause, type RetryOptions } from "./retry.ts";

export type ConnectionLifecycleOptions = RetryOptions &
  OpenConnectionOptions & {
    readonly agent: string;
    readonly openMsMax: number;
    /** A connection that lasted this long counts as healthy: the next attempt follows quickly. */
    readonly healthyAfterMs: number;
  };

/** idle: not wanted. waiting: between two attempts. refused: no attempt until `connect()` is called. */
type State =
  | { readonly kind: "idle" }
  | { readonly kind: "refused" }
  | ({ readonly kind: "waiting" } & RetryWait)
  | { readonly kind: "asking-token"; readonly until: Millis }
  | { readonly kind: "opening"; readonly token: string; readonly until: Millis }
  | { readonly kind: "greeting"; readonly token: string; readonly until: Millis }
  | { readonly kind: "open"; readonly connection: OpenConnection };

/** A gateway accepts a HELLO of at least 8 KiB, and closes the connection without a reason from twice its limit on. */
const TOKEN_BYTES_SURE = 16 * 1024;
const TOKEN_MAY_BE_LONG =
  "the connection was lost after the token was sent, which may be too long: use a shorter one, for example with a pattern such as notes/* instead of a list of rooms";
const TOKEN_FUNCTION = "the application's token function";

export class ConnectionLifecycle {
  readonly #options: ConnectionLifecycleOptions;
  readonly #retry: Retry;
  readonly #unit: () => number;
  #state: State = { kind: "idle" };
  /** The last ERROR frame: the reason for the close that follows. */
  #lastError: (ServerFrame & { type: "error" }) | undefined;
  #detours: number;
  /** A connection was closed because nothing arrived, and no PONG has arrived since. */
  #wasSilent = false;

  /** `unit`: returns a number in [0, 1). `detours`: how many gateways in a row sent the client away, or did not answer. */
  constructor(options: ConnectionLifecycleOptions, unit: () => number, detours = 0) {
    this.#detours = detours;
    this.#options = options;
    this.#retry = new Retry(options, unit);
    this.#unit = unit;
  }

  get status(): ConnectionStatus {
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
        return this.#state.connection.isDegraded ? "degraded" : "connected";
      default:
        return assertNever(this.#state);
    }
  }

  /** Undefined unless it waits for the next attempt. */
  get waiting(): RetryWait | undefined {
    return this.#state.kind === "waiting" ? this.#state : undefined;
  }

  /** Frames can be sent and received. */
  get isOpen(): boolean {
    return this.#state.kind === "open";
  }

  /** How many gateways in a row sent the client away, or did not answer. The next attempt should reach another one. */
  get detours(): number {
    return this.#detours;
  }

  /** The time of the next tick. */
  get dueAt(): Millis | undefined {
    const state = this.#state;
    switch (state.kind) {
      case "waiting":
      case "asking-token":
      case "opening":
      case "greeting":
        return state.until;
      case "open":
        return state.connection.dueAt;
      case "idle":
      case "refused":
        return undefined;
      default:
        return assertNever(state);
    }
  }

  receiveSent(bytes: number, now: Millis): void {
    if (this.#state.kind === "open") this.#state.connection.receiveSent(bytes, now);
  }

  receiveInput(input: ConnectionInput, now: Millis): ConnectionEffect[] {
    switch (input.kind) {
      case "connect":
        return ["idle", "refused", "waiting"].includes(this.#state.kind) ? this.#attempt(now) : [];
      case "disconnect":
        this.#receiveHealthy();
        return this.#end({ kind: "idle" });
      case "token":
        if (this.#state.kind === "open") return [{ kind: "send", frame: { type: "renew", token: input.token } }];
        if (this.#state.kind !== "asking-token") return [];
        this.#state = { kind: "opening", token: input.token, until: this.#openUntil(now) };
        return [{ kind: "open-socket" }];
      case "token-failed":
        return this.#receiveTokenFailed(input, now);
      case "socket-opened":
        return this.#state.kind === "opening" ? this.#greet(this.#state.token, now) : [];
      case "socket-forbidden":
        return this.#refuse(socketForbidden());
      case "socket-closed":
        return this.#receiveClosed(input, now);
      case "frame":
        return [...this.#receiveAfterError(input.frame), ...this.#receiveFrame(input.frame, now)];
      case "ask-arrival":
        return this.#state.kind === "open" ? this.#state.connection.ping(now) : [];
      case "network":
        return this.#receiveNetwork(input.change, now);
      case "tick":
        return this.#receiveTick(now);
      default:
        return assertNever(input);
    }
  }

  #attempt(now: Millis): ConnectionEffect[] {
    this.#state = { kind: "asking-token", until: (now + this.#options.tokenMsMax) as Millis };
    this.#lastError = undefined;
    this.#retry.begin();
    return [{ kind: "ask-token" }];
  }

  #greet(token: string, now: Millis): ConnectionEffect[] {
    this.#state = { kind: "greeting", token, until: this.#openUntil(now) };
    return [{ kind: "send", frame: { type: "hello", version: PROTOCOL_VERSION, token, agent: this.#options.agent } }];
  }

  #receiveTokenFailed({ how, cause }: { readonly how: string; readonly cause?: unknown }, now: Millis): ConnectionEffect[] {
    const why = `${TOKEN_FUNCTION} ${how}`;
    if (this.#state.kind === "open") this.#state.connection.receiveTokenFailed(now);
    else if (this.#state.kind === "asking-token") this.#wait(why, "answer", now);
    else return [];
    return [{ kind: "problem", problem: { kind: "token-failed", message: `${why}; it is called again later`, cause } }];
  }

  /**
   * An ERROR frame that is followed by another frame did not announce a close. The error "frame too large" then means
   * that a room's presence was too large.
   */
  #receiveAfterError(frame: ServerFrame | UnknownFrame | undefined): ConnectionEffect[] {
    const before = this.#lastError;
    this.#lastError = frame?.type === "error" ? frame : undefined;
    if (frame === undefined || this.#state.kind !== "open" || before?.code !== CLOSE.frameTooLarge.code) return [];
    return [{ kind: "problem", problem: presenceTooLarge(this.#state.connection.limits.presenceBytesMax) }];
  }

  #receiveFrame(frame: ServerFrame | UnknownFrame | undefined, now: Millis): ConnectionEffect[] {
    const state = this.#state;
    if (state.kind === "open") state.connection.receiveSign(now);
    if (frame === undefined) {
      return this.#refuse(connectionRefused(CLOSE.badFrame.code, "the server sent bytes that are no frame: it may speak another protocol"));
    }
    if (frame.type === "pong") this.#wasSilent = false;
    if (frame.type === "retry-later") this.#retry.receiveRetryAfter(frame.retryAfterMs);
    if (state.kind === "open") return state.connection.receiveFrame(frame, now);
    if (frame.type !== "welcome" || state.kind !== "greeting") return [];
    this.#state = { kind: "open", connection: new OpenConnection(frame, this.#options, this.#unit, now, this.#wasSilent) };
    return [{ kind: "connection-open", limits: frame.limits }];
  }

  #receiveClosed({ code, why, retryAfterMs }: ConnectionInput & { kind: "socket-closed" }, now: Millis): ConnectionEffect[] {
    const { kind } = this.#state;
    if (kind !== "opening" && kind !== "greeting" && kind !== "open") return [];
    const lost = kind === "greeting" && this.#state.token.length > TOKEN_BYTES_SURE ? TOKEN_MAY_BE_LONG : "the connection was lost";
    if (kind === "opening") this.#retry.receiveUnreachable(retryAfterMs);
    const reason = kind === "opening" ? unreachable(why) : `${this.#lastError?.message ?? why ?? lost} (close code ${code})`;
    const reconnect = reconnectAfterClose(code);
    switch (reconnect) {
      case "never":
        return this.#refuse(connectionRefused(code, this.#lastError?.message ?? why));
      case "with-new-token":
        return this.#options.tokenIsFixed ? this.#refuse(tokenExpired()) : this.#retryLater(reason, "answer", now);
      case "after-delay":
        this.#retry.receiveBan();
        return this.#retryLater(reason, "answer", now);
      case "now": {
        const effects = this.#retryLater(reason, "no-answer", now);
        this.#detours += 1;
        return effects;
      }
      case "after-backoff":
        return this.#retryLater(reason, isGatewayClose(code) ? "answer" : "no-answer", now);
      default:
        return assertNever(reconnect);
    }
  }

  /** Any network change checks an open connection. If the network is back, a wait between attempts is shortened. */
  #receiveNetwork(change: NetworkChange, now: Millis): ConnectionEffect[] {
    const state = this.#state;
    if (state.kind === "open") return state.connection.check(now);
    if (state.kind === "waiting" && change === "back" && !this.#retry.isAsked) {
      this.#detours = 0;
      this.#state = { ...state, until: Math.min(state.until, now + this.#retry.receiveNetworkBack()) as Millis };
    }
    return [];
  }

  #receiveTick(now: Millis): ConnectionEffect[] {
    const state = this.#state;
    switch (state.kind) {
      case "waiting":
        return now < state.until ? [] : this.#attempt(now);
      case "asking-token":
        return now < state.until ? [] : this.#receiveTokenFailed({ how: `took longer than ${this.#options.tokenMsMax / 1000} s` }, now);
      case "opening":
      case "greeting":
        return now < state.until
          ? []
          : this.#retryLater(`the server did not answer within ${this.#options.openMsMax} ms`, "no-answer", now);
      case "open": {
        const why = state.connection.silenceReason(now);
        if (why === undefined) return state.connection.receiveTick(now);
        this.#wasSilent = true;
        return this.#retryLater(why, "no-answer", now);
      }
      case "idle":
      case "refused":
        return [];
      default:
        return assertNever(state);
    }
  }

  /** The connection has ended and is still wanted. */
  #retryLater(why: string, cause: RetryCause, now: Millis): ConnectionEffect[] {
    if (this.#state.kind === "open") {
      const { since, hasJoined } = this.#state.connection;
      if (now - since >= this.#options.healthyAfterMs) this.#receiveHealthy();
      if (hasJoined) this.#retry.receiveLost(now);
    } else {
      this.#detours += 1;
    }
    const lost = this.#end({ kind: "idle" });
    this.#wait(why, cause, now);
    return lost;
  }

  #receiveHealthy(): void {
    this.#retry.receiveHealthy();
    this.#detours = 0;
  }

  #refuse(refusal: Refusal): ConnectionEffect[] {
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
        return [{ kind: "close-socket" }, { kind: "connection-lost", lastReceivedAt: state.connection.lastReceivedAt }];
      case "idle":
      case "refused":
      case "waiting":
      case "asking-token":
        return [];
      default:
        return assertNever(state);
    }
  }

  #wait(why: string, cause: RetryCause, now: Millis): void {
    this.#state = { kind: "waiting", why, until: (now + this.#retry.nextMs(cause, now)) as Millis };
  }

  #openUntil(now: Millis): Millis {
    return (now + this.#options.openMsMax) as Millis;
  }
}

function unreachable(why = "the browser gives the reason only in its console"): string {
  return `cannot reach the server: ${why}. Check that the URL is correct and that a gateway is running there.`;
}
