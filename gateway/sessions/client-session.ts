/**
 * One admitted connection, from HELLO to its end: token, rates, and reasons to close. open-session.ts handles frames
 * after the token is valid. Deterministic. A refused frame closes the connection with a code that defines what the
 * client does next. Other connections are not affected.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import { CLOSE_MEANINGS, type CloseName } from "../../shared/wire/close-codes.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import {
  type BackboneState,
  type Frame,
  FrameType,
  PROTOCOL_VERSION,
  type ServerFrame,
  type UnknownFrame,
} from "../../shared/wire/frames.ts";
import type { ConnectionRates, RatePool } from "../limits/connection-rates.ts";
import type { Identity, TokenVerdict } from "./identity.ts";
import { type JoinFrame, OpenSession, type OpenSessionOptions, type Reply } from "./open-session.ts";
import { otherProtocolRefusal } from "./other-protocol.ts";
import type { FrameSource } from "./partial-frames.ts";
import { badFrame, outOfTurn, type SessionRefusal, type SessionEffect, tooFast, closingEffects } from "./session-effects.ts";

/** Shared by all connections, because a copy for each would take more memory than the rest of an idle connection. */
export type ClientSessionOptions = OpenSessionOptions & {
  readonly rates: RatePool;
  readonly helloMsMax: number;
  /** Delay that a client is asked to wait when it is closed because of load. */
  readonly retryAfterMs: number;
};

/** `name`: the connection's name in WELCOME, for logs on both sides. `since`: when the state began. */
type State =
  | { readonly kind: "awaiting-hello"; readonly name: string; readonly since: Millis }
  /**
   * A client of y-websocket or Hocuspocus has its refusal. It is closed as late as a silent client: most versions connect
   * again at once after a close, and would soon cause a ban of their address.
   */
  | { readonly kind: "other-protocol"; readonly since: Millis }
  /** A client may join rooms without waiting for WELCOME. */
  | { readonly kind: "checking-token"; readonly name: string; readonly since: Millis; readonly early: JoinFrame[] }
  | OpenSession
  | { readonly kind: "closed"; readonly rooms: readonly RoomKey[]; readonly identity: Identity | undefined };

const TOKEN_EXPIRED: SessionRefusal = { kind: "refused", close: "tokenExpired", message: "the token has expired: ask for a new one" };
const TOKEN_UNCHECKED: SessionRefusal = { kind: "refused", close: "overloaded", message: "tokens cannot be checked right now: try again" };

/** The result of nearly every tick. */
const NOTHING: readonly SessionEffect[] = [];

export class ClientSession {
  readonly #options: ClientSessionOptions;
  #lastFrameAt: Millis;
  /** Undefined: the connection has used none of its rates lately. */
  #rates: ConnectionRates | undefined;
  #state: State;

  constructor(options: ClientSessionOptions, name: string, now: Millis) {
    this.#options = options;
    this.#state = { kind: "awaiting-hello", name, since: now };
    this.#lastFrameAt = now;
  }

  /** The session's rooms and rights. Undefined: the token is not verified yet, or the session has ended. */
  get open(): OpenSession | undefined {
    return this.#state.kind === "open" ? this.#state : undefined;
  }

  /** Including rooms that have not admitted the session yet. */
  get rooms(): readonly RoomKey[] {
    return this.open?.rooms ?? [];
  }

  /** Undefined when `open` is. */
  get identity(): Identity | undefined {
    return this.open?.identity;
  }

  /** Like `identity`, but also available after the end. */
  get bearer(): Identity | undefined {
    return this.#state.kind === "closed" ? this.#state.identity : this.identity;
  }

  /** The client is not silent: on a slow uplink the parts of one frame may take longer than the limit of silence. */
  receiveSign(now: Millis): void {
    this.#lastFrameAt = now;
  }

  /** The bytes are valid only during the call, so the session copies the bytes that it keeps. */
  receiveFrame(bytes: Uint8Array, now: Millis, cameIn: FrameSource = "message"): SessionEffect[] {
    return this.#state.kind === "closed" ? [] : this.#answer(this.#read(bytes, now, cameIn));
  }

  #read(bytes: Uint8Array, now: Millis, cameIn: FrameSource): Reply {
    const { frameBytesMax, partedFrameBytesMax = frameBytesMax } = this.#options.limits;
    this.#lastFrameAt = now;
    if (bytes.byteLength > (cameIn === "parts" ? partedFrameBytesMax : frameBytesMax))
      return {
        kind: "refused",
        close: "frameTooLarge",
        message:
          this.open === undefined
            ? `HELLO may have ${frameBytesMax} bytes: use a shorter token, for example with a pattern such as notes/* instead of a list of rooms`
            : `a message may have ${frameBytesMax} bytes, and a frame in parts ${partedFrameBytesMax}: split the edit`,
      };
    const rates = this.#takenRates;
    if (!rates.takeBytes(bytes.byteLength, now)) return tooFast("bytes");
    if (this.#state.kind === "other-protocol") return rates.takeControl(now) ? [] : this.#closeOtherProtocol(); // Empty messages take no bytes of the rate.
    const refusedPresence = bytes[0] === FrameType.presence ? this.open?.takePresence(bytes, rates, now) : undefined;
    if (refusedPresence !== undefined) return refusedPresence;
    const frame = decodeFrame(bytes);
    if (this.#state.kind === "awaiting-hello") {
      const bytesOfRefusal = otherProtocolRefusal(bytes, CLOSE_MEANINGS.otherProtocol);
      if (bytesOfRefusal !== undefined) {
        this.#state = { kind: "other-protocol", since: this.#state.since };
        return [{ kind: "send-bytes", bytes: bytesOfRefusal }];
      }
      if (isOtherProtocol(bytes, frame)) return { kind: "refused", close: "otherProtocol", message: CLOSE_MEANINGS.otherProtocol };
    }
    if (frame === undefined) return badFrame("a frame did not decode: see WIRE.md for its fields");
    const hasRateOfItsOwn = this.open !== undefined && (frame.type === "edit" || frame.type === "presence");
    if (!hasRateOfItsOwn && !rates.takeControl(now)) return tooFast("frames");
    return frame.type === "unknown" ? [] : this.#receive(frame, rates, now); // A frame type of a newer protocol version.
  }

  #receive(frame: Frame, rates: ConnectionRates, now: Millis): Reply {
    const state = this.#state;
    switch (state.kind) {
      case "awaiting-hello":
        return frame.type === "hello" ? this.#receiveHello(state, frame, now) : outOfTurn(frame, "send HELLO first");
      case "checking-token":
        if (frame.type !== "join") return outOfTurn(frame, "only JOIN may come before WELCOME");
        state.early.push(frame); // The rate of frames limits their number.
        return [];
      case "open":
        return state.receiveFrame(frame, rates, now);
      case "other-protocol":
      case "closed":
        return [];
      default:
        return assertNever(state);
    }
  }

  #receiveHello({ name }: State & { kind: "awaiting-hello" }, frame: Frame & { type: "hello" }, now: Millis): Reply {
    if (frame.version !== PROTOCOL_VERSION)
      return {
        kind: "refused",
        close: "versionUnsupported",
        message: `protocol version ${frame.version} is not served here, ${PROTOCOL_VERSION} is: update the client`,
      };
    this.#state = { kind: "checking-token", name, since: now, early: [] };
    return [{ kind: "verify", token: frame.token }];
  }

  receiveVerdict(verdict: TokenVerdict, now: Millis): SessionEffect[] {
    const state = this.#state;
    return state.kind === "open" || state.kind === "checking-token" ? this.#answer(this.#conclude(state, verdict, now)) : [];
  }

  #conclude(state: State & { kind: "open" | "checking-token" }, verdict: TokenVerdict, now: Millis): Reply {
    switch (verdict.kind) {
      case "refused":
        return { kind: "refused", close: "unauthorized", message: `the token was refused: ${verdict.why}` };
      case "expired":
        return TOKEN_EXPIRED;
      case "unchecked":
        return state.kind === "open" ? state.receiveRenewal(undefined, now) : TOKEN_UNCHECKED;
      case "valid":
        if (verdict.identity.expiresAt <= now) return TOKEN_EXPIRED;
        return state.kind === "open" ? state.receiveRenewal(verdict.identity, now) : this.#welcome(state, verdict.identity, now);
      default:
        return assertNever(verdict);
    }
  }

  #welcome({ name, early }: State & { kind: "checking-token" }, identity: Identity, now: Millis): SessionEffect[] {
    const open = new OpenSession(this.#options, identity);
    this.#state = open;
    const welcome: ServerFrame = {
      type: "welcome",
      version: PROTOCOL_VERSION,
      connection: name,
      limits: this.#options.limits,
      tokenExpiresInMs: open.tokenLeftMs(now),
    };
    return [{ kind: "send", frame: welcome }, ...early.flatMap((frame) => open.receiveJoin(frame))];
  }

  /** `bytes`: the size of a catch-up that the client requested. */
  receiveCaughtUp(bytes: number, now: Millis): void {
    this.#takenRates.receiveCaughtUp(bytes, now);
  }

  receiveTick(now: Millis): readonly SessionEffect[] {
    const { helloMsMax, limits } = this.#options;
    switch (this.#state.kind) {
      case "awaiting-hello":
        return now - this.#state.since < helloMsMax ? NOTHING : this.#refuse("helloTimeout", "no HELLO came in time");
      case "other-protocol":
        return now - this.#state.since < helloMsMax ? NOTHING : this.#closeOtherProtocol();
      case "checking-token":
        // The delay is caused by the gateway, not by the client.
        return now - this.#state.since < helloMsMax ? NOTHING : this.#answer(TOKEN_UNCHECKED);
      case "open":
        this.#giveBackRates(now);
        if (now >= this.#state.identity.expiresAt) return this.#answer(TOKEN_EXPIRED);
        return now - this.#lastFrameAt < limits.silenceMsMax
          ? NOTHING
          : this.#refuse("silent", `no frame came for ${limits.silenceMsMax} ms: send PING every ${limits.pingIntervalMs} ms`);
      case "closed":
        return NOTHING;
      default:
        return assertNever(this.#state);
    }
  }

  /** The gateway will stop. A session without a valid token has no rooms to move, and is closed. */
  receiveGoingAway(reconnectAfterMs: number): SessionEffect[] {
    switch (this.#state.kind) {
      case "open":
        return [{ kind: "send", frame: { type: "going-away", reconnectAfterMs } }];
      case "other-protocol":
        return this.#closeOtherProtocol();
      case "awaiting-hello":
      case "checking-token":
        return this.#refuse("goingAway", "this gateway stops: connect to another");
      case "closed":
        return [];
      default:
        return assertNever(this.#state);
    }
  }

  receiveBackbone(backbone: BackboneState, reconnectAfterMs: number): SessionEffect[] {
    return this.open === undefined ? [] : [{ kind: "send", frame: { type: "degraded", backbone, reconnectAfterMs } }];
  }

  /** The gateway closes the connection, regardless of the client's frames. */
  receiveRefusal(close: CloseName, message: string, retryAfterMs?: number): SessionEffect[] {
    if (this.#state.kind === "closed") return [];
    return this.#refuse(close, message, retryAfterMs).map((effect) =>
      effect.kind === "close" ? { ...effect, isGatewaysWill: true } : effect,
    );
  }

  /** Returns the rooms to leave. */
  receiveClosed(): RoomKey[] {
    this.#end();
    return this.#state.kind === "closed" ? [...this.#state.rooms] : [];
  }

  get #takenRates(): ConnectionRates {
    return (this.#rates ??= this.#options.rates.take());
  }

  #giveBackRates(now: Millis): void {
    if (this.#rates?.receiveTick(now) !== "untouched") return;
    this.#options.rates.giveBack(this.#rates);
    this.#rates = undefined;
  }

  #answer(reply: Reply): SessionEffect[] {
    if (!("kind" in reply)) return reply;
    const { close, message, limit } = reply;
    return [...(limit === undefined ? [] : [{ kind: "limit-reached" as const, limit }]), ...this.#refuse(close, message)];
  }

  /** The message is for people who read logs. The close code defines what the client does next. */
  #refuse(close: CloseName, message: string, retryAfterMs = this.#options.retryAfterMs): SessionEffect[] {
    this.#end();
    return closingEffects(close, message, retryAfterMs);
  }

  /** Without a frame, because the client fails at frames. */
  #closeOtherProtocol(): SessionEffect[] {
    this.#end();
    return [{ kind: "close", close: "otherProtocol" }];
  }

  #end(): void {
    if (this.#state.kind === "closed") return;
    this.#state = { kind: "closed", rooms: this.rooms, identity: this.identity };
  }
}

/**
 * No frame has a type below HELLO. Later messages of y-websocket begin with such a byte, and messages of other clients do
 * not decode as frames.
 */
function isOtherProtocol(bytes: Uint8Array, frame: Frame | UnknownFrame | undefined): boolean {
  return frame === undefined || (bytes[0] ?? 0) < FrameType.hello;
}
