/**
 * One line to the server, for as long as it is wanted: token, socket, HELLO, `open-line.ts`, and back again after whatever
 * ended it. The close code alone decides whether and how to come back. Deterministic. Rules CON1 to CON24.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis } from "../../shared/ids.ts";
import { CLOSE, meaningOfClose, reconnectAfterClose } from "../../shared/wire/close-codes.ts";
import { PROTOCOL_VERSION, type ServerFrame, type UnknownFrame } from "../../shared/wire/frames.ts";
import type { ConnectionEffect, ConnectionInput, LineStatus, Waiting } from "./connection-messages.ts";
import type { NetworkNews } from "../ports.ts";
import { OpenLine, type OpenLineOptions } from "./open-line.ts";
import { connectionRefused, presenceTooLarge, type Refusal, socketForbidden, tokenExpired } from "../room/problems.ts";
import { Retry, type RetryOptions } from "./retry.ts";

export type ConnectionOptions = RetryOptions &
  OpenLineOptions & {
    readonly agent: string;
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
  | { readonly kind: "open"; readonly line: OpenLine };

const TOKEN_FUNCTION = "the application's token function";

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #retry: Retry;
  readonly #unit: () => number;
  #state: State = { kind: "idle" };
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
        return this.#state.line.isDegraded ? "degraded" : "connected";
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
        return state.line.dueAt;
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
        return this.#receiveTokenFailed(input, now);
      case "socket-opened":
        return this.#state.kind === "opening" ? this.#greet(this.#state.token, now) : [];
      case "socket-forbidden":
        return this.#giveUp(socketForbidden());
      case "socket-closed":
        return this.#receiveClosed(input, now);
      case "frame":
        return [...this.#hearOn(input.frame), ...this.#receiveFrame(input.frame, now)];
      case "ask-arrival":
        return this.#state.kind === "open" ? this.#state.line.ping(now) : [];
      case "network":
        return this.#receiveNetwork(input.news, now);
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

  #receiveTokenFailed({ how, cause }: { readonly how: string; readonly cause?: unknown }, now: Millis): ConnectionEffect[] {
    const why = `${TOKEN_FUNCTION} ${how}`;
    if (this.#state.kind === "open") this.#state.line.receiveTokenFailed(now);
    else if (this.#state.kind === "asking-token") this.#wait(why, now);
    else return [];
    return [{ kind: "problem", problem: { kind: "token-failed", message: `${why}; it is asked again later`, cause } }];
  }

  /** An ERROR that something comes after was about no close. Of frames too large it is then what a room was to show. */
  #hearOn(frame: ServerFrame | UnknownFrame | undefined): ConnectionEffect[] {
    const before = this.#said;
    this.#said = frame?.type === "error" ? frame : undefined;
    if (frame === undefined || this.#state.kind !== "open" || before?.code !== CLOSE.frameTooLarge.code) return [];
    return [{ kind: "problem", problem: presenceTooLarge(this.#state.line.limits.presenceBytesMax) }];
  }

  #receiveFrame(frame: ServerFrame | UnknownFrame | undefined, now: Millis): ConnectionEffect[] {
    const state = this.#state;
    if (state.kind === "open") state.line.heard(now);
    if (frame === undefined) {
      return this.#giveUp(connectionRefused(CLOSE.badFrame.code, "the server sent bytes that are no frame: it may speak another protocol"));
    }
    if (frame.type === "retry-later") this.#retry.asked(frame.retryAfterMs);
    if (state.kind === "open") return state.line.receiveFrame(frame, now);
    if (frame.type !== "welcome" || state.kind !== "greeting") return [];
    this.#state = { kind: "open", line: new OpenLine(frame, this.#options, this.#unit, now) };
    return [{ kind: "line-open", limits: frame.limits }];
  }

  #receiveClosed({ code, why, retryAfterMs }: ConnectionInput & { kind: "socket-closed" }, now: Millis): ConnectionEffect[] {
    const { kind } = this.#state;
    if (kind !== "opening" && kind !== "greeting" && kind !== "open") return [];
    if (kind === "opening") this.#retry.refused(retryAfterMs);
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

  /** An open line is asked whether it still is one, whatever the news; a wait ends with the trouble that it was for. */
  #receiveNetwork(news: NetworkNews, now: Millis): ConnectionEffect[] {
    const state = this.#state;
    if (state.kind === "open") return state.line.check(now);
    if (state.kind === "waiting" && news === "back" && !this.#retry.isAsked) {
      this.#state = { ...state, until: Math.min(state.until, now + this.#retry.networkIsBack()) as Millis };
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
        return now < state.until ? [] : this.#breakOff(`the server did not answer within ${this.#options.openMsMax} ms`, now);
      case "open": {
        const why = state.line.whySilent(now);
        return why === undefined ? state.line.receiveTick(now) : this.#breakOff(why, now);
      }
      case "idle":
      case "refused":
        return [];
      default:
        return assertNever(state);
    }
  }

  /** The line is no more, and is wanted still. */
  #breakOff(why: string, now: Millis): ConnectionEffect[] {
    if (this.#state.kind === "open" && now - this.#state.line.since >= this.#options.healthyAfterMs) this.#retry.healthy();
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
        return [{ kind: "close-socket" }, { kind: "line-lost", heardAt: state.line.heardAt }];
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

/** Browsers say nothing, to the page, of what came of it. */
function unreachable(why: string | undefined): string {
  const questions = "Is the address right, and does a gateway answer there";
  return why === undefined
    ? `the server cannot be reached, and the browser's console says little more. ${questions}, or does COROOM_ALLOWED_ORIGINS lack this page's origin?`
    : `the server cannot be reached: ${why}. ${questions}?`;
}
