/**
 * One connection, from its hello to its end: takes frames, answers with what should happen next. What a
 * client may say when, and what its token lets it do, is settled here and nowhere else. Deterministic.
 *
 * The refusal of a frame closes the connection with a code that says what to do; nobody else notices.
 */

import { assertNever } from "../shared/assert.ts";
import type { SubmittedEdit } from "../shared/bus/envelope.ts";
import { type ClientId, type ClientKey, type Millis, type Position, type RoomId, type RoomKey, roomOf, type Seq, type TenantId, type UserId } from "../shared/ids.ts";
import type { CloseName } from "../shared/wire/close-codes.ts";
import { decodeFrame } from "../shared/wire/codec.ts";
import { type BackboneState, type Channel, type Counter, type Frame, type JoinRefusal, type LeftReason, type Limits, type NackReason, PROTOCOL_VERSION, type Rights, type ServerFrame, type TentativeEdit } from "../shared/wire/frames.ts";
import type { BoardRequest } from "./boards.ts";
import type { PresenceField } from "../shared/wire/presence.ts";
import { farewell } from "./farewell.ts";
import { type Admission, admit, type Identity, READ_ONLY, type TokenVerdict } from "./identity.ts";
import { EditRate, PresenceRate, type Rate, TokenBucket } from "./rate-limit.ts";
import { type JoinedRoom, SessionRooms } from "./session-rooms.ts";

export type SessionEffect =
  | { kind: "verify"; token: string }
  | { kind: "send"; frame: ServerFrame }
  | { kind: "close"; close: CloseName }
  | { kind: "limit-reached"; limit: ConnectionLimit }
  | { kind: "join"; room: RoomKey; request: number; client: ClientId; user: UserId; name: string; position: Position; rights: Rights }
  | { kind: "leave"; room: RoomKey }
  | { kind: "edit"; room: RoomKey; edit: SubmittedEdit }
  | { kind: "resubmit"; room: RoomKey; edit: TentativeEdit }
  | { kind: "watch-board"; request: Omit<BoardRequest, "connection"> }
  | { kind: "replay"; room: RoomKey; after: Seq; through: Seq }
  | { kind: "presence"; room: RoomKey; fields: readonly PresenceField[] }
  /** It came faster than it may. */
  | { kind: "presence-passed-over" };

/** What one connection alone can come up against. */
export type ConnectionLimit = "edits" | "presence" | "frames" | "bytes" | "catch-ups";

export type Restriction = { readonly level: "banned" | "read-only"; readonly reason: string };

/** One for all connections: what is copied for each weighs more than all else that an idle one holds. */
export type SessionOptions = {
  readonly limits: Limits;
  readonly helloMsMax: number;
  readonly roomsMax: number;
  readonly editRates: { readonly fresh: Rate; readonly repeats: Rate };
  readonly controlRate: Rate;
  /** Beyond it presence is passed over; who sends far more is closed. */
  readonly presenceRate: Rate;
  readonly byteRate: Rate;
  /** Bytes of rooms' past that the client may have itself sent. */
  readonly catchUpRate: Rate;
  /** What a client is told to wait that is closed for the load it makes or meets. */
  readonly retryAfterMs: number;
  /** Derives who a client is from its user and its own key, so that nobody can be another. */
  readonly clientIdOf: (tenant: TenantId, user: UserId, key: ClientKey) => ClientId;
  /** What somebody may not do in a room, whatever the token says. */
  readonly restrictionOn: (tenant: TenantId, user: UserId, room: RoomKey) => Restriction | undefined;
};

/** `name`: the connection's in WELCOME, for logs on both sides. */
type State =
  | { readonly kind: "awaiting-hello"; readonly name: string }
  /** A client may ask for its rooms at once, without waiting for WELCOME. */
  | { readonly kind: "checking-token"; readonly name: string; readonly early: JoinFrame[] }
  | { readonly kind: "open"; identity: Identity; readonly rooms: SessionRooms; renewing: boolean }
  | { readonly kind: "closed"; readonly rooms: readonly RoomKey[]; readonly identity: Identity | undefined };

type OpenState = State & { kind: "open" };
type JoinFrame = Frame & { type: "join" };

export class Session {
  readonly #options: SessionOptions;
  readonly #openedAt: Millis;
  #heardAt: Millis;
  readonly #controls: TokenBucket;
  readonly #bytes: TokenBucket;
  /** From the first edit on: most connections only read. */
  #edits: EditRate | undefined;
  #presence: PresenceRate | undefined;
  /** From the first catch-up on. */
  #catchUps: TokenBucket | undefined;
  #state: State;

  constructor(options: SessionOptions, name: string, now: Millis) {
    this.#options = options;
    this.#state = { kind: "awaiting-hello", name };
    this.#openedAt = now;
    this.#heardAt = now;
    this.#controls = new TokenBucket(options.controlRate, now);
    this.#bytes = new TokenBucket(options.byteRate, now);
  }

  /** Whose connection it is, once that is known. */
  get person(): { readonly user: UserId; readonly name: string } | undefined {
    return this.#state.kind === "open" ? this.#state.identity : undefined;
  }

  /** Those asked for among them. */
  get rooms(): readonly RoomKey[] {
    return this.#state.kind === "open" ? this.#state.rooms.all().map(({ room }) => room) : [];
  }

  /** `bytes` are lent: whatever is kept is copied. */
  receiveFrame(bytes: Uint8Array, now: Millis): SessionEffect[] {
    const state = this.#state;
    if (state.kind === "closed") return [];
    this.#heardAt = now;
    if (bytes.byteLength > this.#options.limits.frameBytesMax) return this.#refuse("frameTooLarge", `a frame may have ${this.#options.limits.frameBytesMax} bytes: split the edit`);
    if (!this.#bytes.take(now, bytes.byteLength)) return this.#tooFast("bytes");
    const frame = decodeFrame(bytes);
    if (frame === undefined) return this.#refuse("badFrame", "a frame did not decode: see WIRE.md for its fields");
    if (frame.type === "edit" && state.kind === "open") return this.#receiveEdit(state, frame, now);
    if (frame.type === "presence" && state.kind === "open") return this.#receivePresence(state, frame, now);
    if (!this.#controls.take(now)) return this.#tooFast("frames");
    if (frame.type === "unknown") return []; // Of a newer protocol.

    switch (state.kind) {
      case "awaiting-hello":
        return frame.type === "hello" ? this.#receiveHello(state.name, frame) : this.#outOfTurn(frame, "say HELLO first");
      case "checking-token":
        if (frame.type !== "join" || state.early.length >= this.#options.roomsMax) return this.#outOfTurn(frame, "only JOIN may come before WELCOME");
        state.early.push(frame);
        return [];
      case "open":
        return this.#receiveWhileOpen(state, frame, now);
      default:
        return assertNever(state);
    }
  }

  receiveVerdict(verdict: TokenVerdict, now: Millis): SessionEffect[] {
    const state = this.#state;
    if (state.kind === "awaiting-hello" || state.kind === "closed") return [];
    switch (verdict.kind) {
      case "refused":
        return this.#refuse("unauthorized", `the token was refused: ${verdict.why}`);
      case "expired":
        return this.#refuse("tokenExpired", "the token has expired: ask for a new one");
      case "unchecked":
        return state.kind === "open" ? answerRenewal(state, now) : this.#refuse("overloaded", "tokens cannot be checked right now: try again");
      case "valid":
        if (verdict.identity.expiresAt <= now) return this.#refuse("tokenExpired", "the token has expired: ask for a new one");
        return state.kind === "open" ? this.#renew(state, verdict.identity, now) : this.#welcome(state, verdict.identity, now);
      default:
        return assertNever(verdict);
    }
  }

  /** The room has let the connection in. */
  receiveJoined(joined: { room: RoomKey; channel: Channel; client: ClientId; rights: Rights }, now: Millis): void {
    if (this.#state.kind !== "open") return;
    const admission = this.#admit(this.#state.identity, roomOf(joined.room)); // The right may have been lost while the room was asked for.
    this.#state.rooms.joined(admission.kind === "admitted" && admission.rights.write ? joined : { ...joined, rights: READ_ONLY }, now);
  }

  /** So much of a room's past was sent because the client asked. What it costs is known only now: its next question is refused if that was too much. */
  receiveCaughtUp(bytes: number, now: Millis): void {
    this.#catchUps ??= new TokenBucket(this.#options.catchUpRate, now);
    this.#catchUps.spend(now, bytes);
  }

  receiveJoinRefused(room: RoomKey): void {
    if (this.#state.kind === "open") this.#state.rooms.joinRefused(room);
  }

  receiveTick(now: Millis): SessionEffect[] {
    switch (this.#state.kind) {
      case "awaiting-hello":
      case "checking-token":
        return now - this.#openedAt < this.#options.helloMsMax ? [] : this.#refuse("helloTimeout", "no HELLO came in time");
      case "open":
        if (now >= this.#state.identity.expiresAt) return this.#refuse("tokenExpired", "the token has expired: ask for a new one");
        return now - this.#heardAt < this.#options.limits.silenceMsMax ? [] : this.#refuse("silent", `nothing was heard for ${this.#options.limits.silenceMsMax} ms: send PING every ${this.#options.limits.pingIntervalMs} ms`);
      case "closed":
        return [];
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
    return this.#state.kind === "open" ? [{ kind: "send", frame: { type: "degraded", backbone, reconnectAfterMs } }] : [];
  }

  /** The gateway will not have the connection, whatever it says. */
  receiveRefusal(close: CloseName, message: string, retryAfterMs?: number): SessionEffect[] {
    return this.#state.kind === "closed" ? [] : this.#refuse(close, message, retryAfterMs);
  }

  /** What its user may do in some room is another thing now. */
  receiveRestriction(): SessionEffect[] {
    return this.#state.kind === "open" ? this.#takeBackAll(this.#state) : [];
  }

  /** Out of one room. */
  receiveKick(room: RoomKey): SessionEffect[] {
    if (this.#state.kind !== "open") return [];
    const entry = this.#state.rooms.all().find((entry) => entry.room === room);
    return entry === undefined ? [] : takeAway(this.#state, entry.room, entry.request, entry.joined, "rights-revoked");
  }

  /** Undefined: not in yet, or not any more. */
  get identity(): Identity | undefined {
    return this.#state.kind === "open" ? this.#state.identity : undefined;
  }

  /** As `identity`, and after its end too. */
  get bearer(): Identity | undefined {
    return this.#state.kind === "open" || this.#state.kind === "closed" ? this.#state.identity : undefined;
  }

  /** Its rights there; undefined where it is not. */
  rightsIn(room: RoomKey): Rights | undefined {
    return this.#state.kind === "open" ? this.#state.rooms.all().find((entry) => entry.room === room)?.joined?.rights : undefined;
  }

  /** The rooms to leave. */
  receiveClosed(): RoomKey[] {
    this.#end();
    return this.#state.kind === "closed" ? [...this.#state.rooms] : [];
  }

  #receiveHello(name: string, frame: Frame & { type: "hello" }): SessionEffect[] {
    if (frame.version !== PROTOCOL_VERSION) return this.#refuse("versionUnsupported", `protocol version ${frame.version} is not served here, ${PROTOCOL_VERSION} is: update the client`);
    this.#state = { kind: "checking-token", name, early: [] };
    return [{ kind: "verify", token: frame.token }];
  }

  #welcome({ name, early }: State & { kind: "checking-token" }, identity: Identity, now: Millis): SessionEffect[] {
    const open: OpenState = { kind: "open", identity, rooms: new SessionRooms(this.#options.roomsMax), renewing: false };
    this.#state = open;
    const welcome: ServerFrame = { type: "welcome", version: PROTOCOL_VERSION, connection: name, limits: this.#options.limits, tokenExpiresInMs: leftOf(identity, now) };
    return [{ kind: "send", frame: welcome }, ...early.flatMap((frame) => this.#receiveJoin(open, frame))];
  }

  #renew(state: OpenState, identity: Identity, now: Millis): SessionEffect[] {
    if (identity.tenant !== state.identity.tenant || identity.user !== state.identity.user) return this.#refuse("unauthorized", "the new token is of another user or tenant: connect again with it");
    state.identity = identity;
    return [...answerRenewal(state, now), ...this.#takeBackAll(state)];
  }

  #receiveWhileOpen(state: OpenState, frame: Frame, now: Millis): SessionEffect[] {
    switch (frame.type) {
      case "join":
        return this.#catchUps?.take(now, 0) === false ? this.#tooFast("catch-ups") : this.#receiveJoin(state, frame);
      case "renew":
        if (state.renewing) return [];
        state.renewing = true;
        return [{ kind: "verify", token: frame.token }];
      case "leave":
        return this.#inRoom(state, frame, (joined) => {
          state.rooms.leave(joined);
          return [{ kind: "leave", room: joined.room }, { kind: "send", frame: { type: "left", channel: frame.channel, reason: "asked" } }];
        });
      case "resubmit":
        return this.#inRoom(state, frame, ({ room, rights }) => {
          const { edit } = frame;
          if (!rights.write) return []; // Not answered: a NACK always means the receiver's own edits.
          return [{ kind: "resubmit", room, edit: { ...edit, mac: edit.mac.slice(), payload: edit.payload.slice() } }];
        });
      case "replay-request":
        return this.#inRoom(state, frame, ({ room }) => {
          if (this.#catchUps?.take(now, 0) === false) return this.#tooFast("catch-ups");
          return [{ kind: "replay", room, after: frame.after, through: frame.through }];
        });
      case "watch-board":
        return this.#inRoom(state, frame, ({ room }) => {
          const { user, name } = state.identity;
          const { channel, role, window, shown } = frame;
          return [{ kind: "watch-board", request: { user, name, room, channel, role, window, shown } }];
        });
      case "ping":
        return [{ kind: "send", frame: { type: "pong", nonce: frame.nonce } }];
      default:
        return this.#outOfTurn(frame, "it has no place in an open session");
    }
  }

  #receiveJoin(state: OpenState, frame: JoinFrame): SessionEffect[] {
    const admission = this.#admit(state.identity, frame.room);
    if (admission.kind === "refused") return [joinRefused(frame.request, "not-allowed", admission.why)];
    const { room, rights } = admission;
    if (!state.rooms.ask(room, frame.request)) return [joinRefused(frame.request, "too-many-rooms", `a connection joins ${this.#options.roomsMax} rooms at most: leave one first`)];
    const client = this.#options.clientIdOf(state.identity.tenant, state.identity.user, frame.clientKey);
    const { user, name } = state.identity;
    return [{ kind: "join", room, request: frame.request, client, user, name, position: frame.position, rights }];
  }

  #admit(identity: Identity, room: RoomId): Admission {
    const admission = admit(identity, room);
    if (admission.kind === "refused") return admission;
    const restriction = this.#options.restrictionOn(identity.tenant, identity.user, admission.room);
    if (restriction?.level === "banned") return { kind: "refused", why: `banned from the room for a time: ${restriction.reason}` };
    return restriction === undefined ? admission : { ...admission, rights: READ_ONLY };
  }

  /** What the token, or what is said of its user, does not give any more, or gives again. */
  #takeBackAll(state: OpenState): SessionEffect[] {
    return state.rooms.all().flatMap(({ room, request, joined }) => {
      const admission = this.#admit(state.identity, roomOf(room));
      if (admission.kind === "refused") return takeAway(state, room, request, joined, "rights-revoked");
      const isAsBefore = joined === undefined || joined.rights.write === admission.rights.write;
      return isAsBefore ? [] : takeAway(state, room, request, joined, "rights-changed");
    });
  }

  #receiveEdit(state: OpenState, frame: Frame & { type: "edit" }, now: Millis): SessionEffect[] {
    return this.#inRoom(state, frame, (joined) => {
      const { channel, counter, ackedThrough, parentSeq, payload } = frame;
      if (!(this.#edits ??= new EditRate(this.#options.editRates, now)).takeEdit(counter, joined.seen, now)) return this.#tooFast("edits");
      if (!joined.rights.write) return [nack(channel, counter, "read-only")];
      if (payload.byteLength > this.#options.limits.editBytesMax) return [nack(channel, counter, "too-large")];
      return [{ kind: "edit", room: joined.room, edit: { author: { user: state.identity.user, client: joined.client }, counter, ackedThrough, parentSeq, payload: payload.slice() } }];
    });
  }

  #receivePresence(state: OpenState, frame: Frame & { type: "presence" }, now: Millis): SessionEffect[] {
    this.#presence ??= new PresenceRate(this.#options.presenceRate, now);
    const taken = this.#presence.takeFrame(now);
    if (taken === "too-fast") return this.#tooFast("presence");
    return this.#inRoom(state, frame, ({ room }) => {
      if (taken === "passed-over") return [{ kind: "presence-passed-over" }];
      return [{ kind: "presence", room, fields: frame.fields.map(({ name, value }) => ({ name, value: value.slice() })) }];
    });
  }

  /** What a frame means in the room on its channel. Of a room that was taken away, the client may not know it yet. */
  #inRoom({ rooms }: OpenState, { channel }: { channel: Channel }, receive: (joined: JoinedRoom) => SessionEffect[]): SessionEffect[] {
    const joined = rooms.on(channel);
    if (joined === "taken-away") return [];
    return joined === undefined ? this.#refuse("badFrame", "a frame names a channel that is not joined: JOIN the room first") : receive(joined);
  }

  #tooFast(limit: ConnectionLimit): SessionEffect[] {
    return [{ kind: "limit-reached", limit }, ...this.#refuse("rateLimited", `too many ${limit}: keep to the limits told in WELCOME`)];
  }

  #outOfTurn(frame: Frame, advice: string): SessionEffect[] {
    return this.#refuse("badFrame", `a frame of type ${frame.type} came out of turn: ${advice}`);
  }

  /** The error is for whoever reads logs; the code tells the client what to do. */
  #refuse(close: CloseName, message: string, retryAfterMs = this.#options.retryAfterMs): SessionEffect[] {
    this.#end();
    return farewell(close, message, retryAfterMs);
  }

  #end(): void {
    if (this.#state.kind === "closed") return;
    const [rooms, identity] = this.#state.kind === "open" ? [this.#state.rooms.all().map(({ room }) => room), this.#state.identity] : [[], undefined];
    this.#state = { kind: "closed", rooms, identity };
  }
}

function takeAway(state: OpenState, room: RoomKey, request: number, joined: JoinedRoom | undefined, reason: LeftReason): SessionEffect[] {
  state.rooms.takeAway(room);
  const answer: SessionEffect = joined === undefined ? joinRefused(request, "not-allowed", "the right to this room was taken away") : { kind: "send", frame: { type: "left", channel: joined.channel, reason } };
  return [{ kind: "leave", room }, answer];
}

function answerRenewal(state: OpenState, now: Millis): SessionEffect[] {
  state.renewing = false;
  return [{ kind: "send", frame: { type: "renewed", tokenExpiresInMs: leftOf(state.identity, now) } }];
}

function leftOf({ expiresAt }: Identity, now: Millis): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(expiresAt - now)));
}

function nack(channel: Channel, counter: Counter, reason: NackReason): SessionEffect {
  return { kind: "send", frame: { type: "nack", channel, counter, reason, expected: counter, retryAfterMs: 0 } };
}

function joinRefused(request: number, reason: JoinRefusal, message: string): SessionEffect {
  return { kind: "send", frame: { type: "join-refused", request, reason, retryAfterMs: 0, message } };
}
