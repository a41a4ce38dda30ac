/**
 * One connection, from its hello to its end: what may be said before it is known who speaks (then see
 * open-session.ts), how fast, and what ends it. Deterministic.
 *
 * The refusal of a frame closes the connection with a code that says what to do; nobody else notices.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import { type BackboneState, type Frame, PROTOCOL_VERSION, type Rights, type ServerFrame } from "../../shared/wire/frames.ts";
import type { ConnectionRates, SpareRates } from "../limits/connection-rates.ts";
import { farewell } from "./farewell.ts";
import type { Identity, TokenVerdict } from "./identity.ts";
import { type JoinFrame, type Joined, OpenSession, type OpenSessionOptions, type Reply, type Writing } from "./open-session.ts";
import { badFrame, outOfTurn, type Refusal, type SessionEffect, tooFast } from "./session-effects.ts";

/** One for all connections: what is copied for each weighs more than all else that an idle one holds. */
export type SessionOptions = OpenSessionOptions & {
  readonly rates: SpareRates;
  readonly helloMsMax: number;
  /** What a client is told to wait that is closed for the load it makes or meets. */
  readonly retryAfterMs: number;
};

/** `name`: the connection's in WELCOME, for logs on both sides. `since`: the connection is open, or its token is looked at. */
type State =
  | { readonly kind: "awaiting-hello"; readonly name: string; readonly since: Millis }
  /** A client may ask for its rooms at once, without waiting for WELCOME. */
  | { readonly kind: "checking-token"; readonly name: string; readonly since: Millis; readonly early: JoinFrame[] }
  | OpenSession
  | { readonly kind: "closed"; readonly rooms: readonly RoomKey[]; readonly identity: Identity | undefined };

const TOKEN_EXPIRED: Refusal = { kind: "refused", close: "tokenExpired", message: "the token has expired: ask for a new one" };
const TOKEN_UNCHECKED: Refusal = { kind: "refused", close: "overloaded", message: "tokens cannot be checked right now: try again" };

/** Of each tick of nearly every session. */
const NOTHING: readonly SessionEffect[] = [];

export class Session {
  readonly #options: SessionOptions;
  #heardAt: Millis;
  /** Undefined: nothing was taken of them lately. */
  #rates: ConnectionRates | undefined;
  #state: State;

  constructor(options: SessionOptions, name: string, now: Millis) {
    this.#options = options;
    this.#state = { kind: "awaiting-hello", name, since: now };
    this.#heardAt = now;
  }

  /** Those asked for among them. */
  get rooms(): readonly RoomKey[] {
    return this.#open?.rooms ?? [];
  }

  /** Undefined: not in yet, or not any more. */
  get identity(): Identity | undefined {
    return this.#open?.identity;
  }

  /** As `identity`, and after its end too. */
  get bearer(): Identity | undefined {
    return this.#state.kind === "closed" ? this.#state.identity : this.identity;
  }

  /** Where it may write, and since when it is there. */
  get writing(): readonly Writing[] {
    return this.#open?.writing ?? [];
  }

  /** Its rights there; undefined where it is not. */
  rightsIn(room: RoomKey): Rights | undefined {
    return this.#open?.rightsIn(room);
  }

  /** `bytes` are lent: whatever is kept is copied. */
  receiveFrame(bytes: Uint8Array, now: Millis): SessionEffect[] {
    return this.#state.kind === "closed" ? [] : this.#answer(this.#read(bytes, now));
  }

  #read(bytes: Uint8Array, now: Millis): Reply {
    const { frameBytesMax } = this.#options.limits;
    this.#heardAt = now;
    if (bytes.byteLength > frameBytesMax)
      return { kind: "refused", close: "frameTooLarge", message: `a frame may have ${frameBytesMax} bytes: split the edit` };
    const rates = this.#takenRates;
    if (!rates.takeBytes(bytes.byteLength, now)) return tooFast("bytes");
    const frame = decodeFrame(bytes);
    if (frame === undefined) return badFrame("a frame did not decode: see WIRE.md for its fields");
    const hasRateOfItsOwn = this.#open !== undefined && (frame.type === "edit" || frame.type === "presence");
    if (!hasRateOfItsOwn && !rates.takeControl(now)) return tooFast("frames");
    return frame.type === "unknown" ? [] : this.#receive(frame, rates, now); // Unknown: of a newer protocol.
  }

  #receive(frame: Frame, rates: ConnectionRates, now: Millis): Reply {
    const state = this.#state;
    switch (state.kind) {
      case "awaiting-hello":
        return frame.type === "hello" ? this.#receiveHello(state, frame, now) : outOfTurn(frame, "say HELLO first");
      case "checking-token":
        if (frame.type !== "join" || state.early.length >= this.#options.roomsMax)
          return outOfTurn(frame, "only JOIN may come before WELCOME");
        state.early.push(frame);
        return [];
      case "open":
        return state.receiveFrame(frame, rates, now);
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

  /** The room has let the connection in: with which rights. Undefined: it is closed. */
  receiveJoined(joined: Joined, now: Millis): Rights | undefined {
    return this.#open?.receiveJoined(joined, now);
  }

  receiveJoinRefused(room: RoomKey): void {
    this.#open?.receiveJoinRefused(room);
  }

  /** So much of a room's past was sent because the client asked. */
  receiveCaughtUp(bytes: number, now: Millis): void {
    this.#takenRates.receiveCaughtUp(bytes, now);
  }

  receiveTick(now: Millis): readonly SessionEffect[] {
    const { helloMsMax, limits } = this.#options;
    switch (this.#state.kind) {
      case "awaiting-hello":
        return now - this.#state.since < helloMsMax ? NOTHING : this.#refuse("helloTimeout", "no HELLO came in time");
      case "checking-token":
        return now - this.#state.since < helloMsMax ? NOTHING : this.#answer(TOKEN_UNCHECKED); // It is not the client that is late.
      case "open":
        this.#giveBackRates(now);
        if (now >= this.#state.identity.expiresAt) return this.#answer(TOKEN_EXPIRED);
        return now - this.#heardAt < limits.silenceMsMax
          ? NOTHING
          : this.#refuse("silent", `nothing was heard for ${limits.silenceMsMax} ms: send PING every ${limits.pingIntervalMs} ms`);
      case "closed":
        return NOTHING;
      default:
        return assertNever(this.#state);
    }
  }

  /** The gateway stops soon. Whoever has not come in yet has nothing to move, and is closed. */
  receiveGoingAway(reconnectAfterMs: number): SessionEffect[] {
    switch (this.#state.kind) {
      case "open":
        return [{ kind: "send", frame: { type: "going-away", reconnectAfterMs } }];
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
    return this.#open === undefined ? [] : [{ kind: "send", frame: { type: "degraded", backbone, reconnectAfterMs } }];
  }

  /** The gateway will not have the connection, whatever it says. */
  receiveRefusal(close: CloseName, message: string, retryAfterMs?: number): SessionEffect[] {
    if (this.#state.kind === "closed") return [];
    return this.#refuse(close, message, retryAfterMs).map((effect) =>
      effect.kind === "close" ? { ...effect, isGatewaysWill: true } : effect,
    );
  }

  /** What its user may do in some room is another thing now. */
  receiveRestriction(): SessionEffect[] {
    return this.#open?.receiveRestriction() ?? [];
  }

  /** Out of one room. */
  receiveKick(room: RoomKey): SessionEffect[] {
    return this.#open?.receiveKick(room) ?? [];
  }

  /** The room is no more. */
  receiveDeleted(room: RoomKey): SessionEffect[] {
    return this.#open?.receiveDeleted(room) ?? [];
  }

  /** The rooms to leave. */
  receiveClosed(): RoomKey[] {
    this.#end();
    return this.#state.kind === "closed" ? [...this.#state.rooms] : [];
  }

  get #open(): OpenSession | undefined {
    return this.#state.kind === "open" ? this.#state : undefined;
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

  /** The error is for whoever reads logs; the code tells the client what to do. */
  #refuse(close: CloseName, message: string, retryAfterMs = this.#options.retryAfterMs): SessionEffect[] {
    this.#end();
    return farewell(close, message, retryAfterMs);
  }

  #end(): void {
    if (this.#state.kind === "closed") return;
    this.#state = { kind: "closed", rooms: this.rooms, identity: this.identity };
  }
}
