/**
 * One connection to the server: passes inputs to `connection-lifecycle.ts`, carries out its effects, and passes frames
 * of rooms to `rooms-on-connection.ts`. Several rooms may share it if one token opens all of them. When the gateway
 * announces that it stops, there are briefly two connections: the next one opens while the current one still serves.
 * Failures of the next one are ignored until it replaces the current one. Rules COH1 to COH30.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClientKey, Position } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import type { ClientFrame, Limits } from "../../shared/wire/frames.ts";
import { messagesOf } from "../../shared/wire/parts.ts";
import * as defaults from "../defaults.ts";
import { Events } from "../events.ts";
import { assertOptions, type ServerAddress, serverAddressOf, socketUrl } from "../options.ts";
import type { Socket, ClientWorld } from "../ports.ts";
import { ClientRates } from "./client-rates.ts";
import { ConnectionLifecycle } from "./connection-lifecycle.ts";
import {
  type ConnectionEffect,
  type ConnectionEvents,
  type ConnectionInput,
  type ConnectionStatus,
  type Outage,
  serverFrameOf,
} from "./connection-messages.ts";
import { ControlFrames } from "./control-frames.ts";
import { type ConnectedRoom, RoomsOnConnection } from "./rooms-on-connection.ts";
import { askToken, assertToken, type Token } from "./token-host.ts";
import { WakeTimer, earlier, Turns } from "./turns.ts";

/** The server and the token of a connection. */
export type ConnectionOptions = {
  /** URL of the server: `wss://host`, `ws://host:port`, `https:` or `http:`. A path is kept. */
  readonly url: string;
  /** A JWT, or a function that returns one. The client calls the function for each connection, and again before the token expires. */
  readonly token: Token;
};

/** One attempt to reach a gateway, and its socket. */
type Attempt = { readonly core: ConnectionLifecycle; socket: Socket | undefined; tokensAsked: number };

const AGENT = "@coroom/client";
/** Number of gateways to which a balancer may send a room's clients. Failures without a network count as detours too. */
const DETOURS_MAX = 4;

export class ConnectionHost {
  /** @internal For parts of rooms that use HTTP. */
  readonly options: ConnectionOptions;
  readonly #address: ServerAddress;
  readonly #world: ClientWorld;
  readonly #turns = new Turns<{ attempt: Attempt; input: ConnectionInput }>(({ attempt, input }) => this.#receiveInput(attempt, input));
  readonly #alarm: WakeTimer;
  readonly #events: Events<ConnectionEvents>;
  /** Set while the connection is wanted. */
  #stopWatching: (() => void) | undefined;
  readonly #controls = new ControlFrames((frame) => this.#sendNow(frame));
  readonly #rooms = new RoomsOnConnection({
    send: (frame) => this.send(frame),
    hasJoin: (room) => this.#controls.hasJoin(room),
    withdrawJoin: (room) => this.#controls.withdrawJoin(room),
    withdrawFrom: (channel) => this.#controls.withdrawFrom(channel),
  });
  #current: Attempt;
  /** Undefined: not connected. */
  #rates: ClientRates | undefined;
  /** Replaces the current connection once it is open. */
  #next: Attempt | undefined;
  #lastToken = "";
  readonly #isAdditional: boolean;
  /** Carries the rooms that another member already has on this connection. Undefined: there was none so far. */
  #additional: ConnectionHost | undefined;
  #status: ConnectionStatus = "disconnected";

  constructor(options: ConnectionOptions, world: ClientWorld, { isAdditional = false } = {}) {
    assertOptions(options, "url and token");
    this.options = { url: options.url, token: options.token };
    this.#isAdditional = isAdditional;
    this.#address = serverAddressOf(options.url);
    assertToken(options.token);
    this.#world = world;
    this.#current = this.#newAttempt();
    this.#alarm = new WakeTimer(world.clock, () => this.#tick());
    this.#events = new Events(world.reportError);
  }

  /** @internal Identifies the server. */
  get server(): string {
    return this.#address.http;
  }

  /** @internal For requests over HTTP. Empty before the first connection. */
  get lastToken(): string {
    return this.#lastToken;
  }

  /** State of the connection; `connected` before rooms are joined. */
  get status(): ConnectionStatus {
    return this.#current.core.status;
  }

  /** Why there is no connection, and when the next attempt follows. Undefined unless it waits for the next attempt. */
  get outage(): Outage | undefined {
    const waiting = this.#current.core.waiting;
    return waiting && { why: waiting.why, retryInMs: Math.max(0, waiting.until - this.#world.clock.now()) };
  }

  /** Calls the listener at each event of this name. {@link ConnectionEvents} lists names and arguments. */
  on<Name extends keyof ConnectionEvents>(name: Name, listener: (...args: ConnectionEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  /** Calls the listener at the next event of this name, once. */
  once<Name extends keyof ConnectionEvents>(name: Name, listener: (...args: ConnectionEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  /** Removes the listener. Without effect if it was not added. */
  off<Name extends keyof ConnectionEvents>(name: Name, listener: (...args: ConnectionEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /** Connects, and reconnects until `disconnect()` is called. While it waits for the next attempt, it tries at once. */
  connect(): void {
    if (!this.#isAdditional || !this.#rooms.isEmpty) this.#turns.add({ attempt: this.#current, input: { kind: "connect" } });
    this.#additional?.connect();
  }

  /** Closes the connection. Its rooms keep their unsent edits for the next `connect()`. */
  disconnect(): void {
    this.#turns.add({ attempt: this.#current, input: { kind: "disconnect" } });
    this.#additional?.disconnect();
  }

  /**
   * @internal For rooms: this connection, or an additional one if another member has the same room here, because a
   * gateway admits a connection to a room once. An additional connection closes with the last room on it.
   */
  connectionFor(member: ConnectedRoom): ConnectionHost {
    if (this.#rooms.isFreeFor(member)) return this;
    this.#additional ??= new ConnectionHost(this.options, this.#world, { isAdditional: true });
    return this.#additional.connectionFor(member);
  }

  /** @internal For rooms: takes part in the connection. */
  enter(member: ConnectedRoom): void {
    this.#rooms.enter(member);
  }

  /** @internal For rooms: releases the room's place. */
  leave(member: ConnectedRoom): void {
    this.#rooms.leave(member);
  }

  /** @internal For rooms that left: the room has sent LEAVE and everything before it. */
  left(member: ConnectedRoom): void {
    this.#rooms.left(member);
    if (this.#isAdditional && this.#rooms.isEmpty) this.#turns.add({ attempt: this.#current, input: { kind: "disconnect" } });
  }

  /** @internal For rooms. */
  join(member: ConnectedRoom, clientKey: ClientKey, position: Position): void {
    this.#rooms.join(member, clientKey, position);
  }

  /** @internal Sends edits and presence at once, because rooms apply the send rates to them. Other frames wait in a queue. */
  send(frame: ClientFrame): void {
    if (frame.type === "edit" || frame.type === "presence" || frame.type === "hello") this.#sendNow(frame);
    else this.#controls.send(frame, this.#world.clock.now());
    this.#setAlarm();
  }

  #newAttempt(detours = 0): Attempt {
    const core = new ConnectionLifecycle(
      { ...defaults.CONNECTION, agent: AGENT, tokenIsFixed: typeof this.options.token === "string" },
      () => this.#world.chance.unit(),
      detours,
    );
    return { core, socket: undefined, tokensAsked: 0 };
  }

  #sendNow(frame: ClientFrame): void {
    const [bytes, now] = [encodeFrame(frame), this.#world.clock.now()];
    for (const message of this.#rates === undefined ? [bytes] : messagesOf(bytes, this.#rates.limits)) this.#current.socket?.send(message);
    this.#current.core.receiveSent(bytes.byteLength, now);
    if (frame.type !== "edit") this.#rates?.edits.spend(bytes.byteLength, now);
    // The PING itself counts too. Otherwise it would cause the next PING.
    if (frame.type === "ping") this.#rates?.receivePingSent(frame.nonce);
    this.#askArrivalIfDue(this.#current, "frame");
  }

  /** Sends the PING after other frames of the same task. */
  #askArrivalIfDue(attempt: Attempt, behind: "frame" | "pong"): void {
    if (this.#rates?.takeArrivalRequest(behind) !== true) return;
    this.#world.clock.soon(() => this.#turns.add({ attempt, input: { kind: "ask-arrival" } }));
  }

  #setAlarm(): void {
    this.#alarm.setFor(earlier(this.#controls.dueAt, earlier(this.#current.core.dueAt, this.#next?.core.dueAt)));
  }

  #tick(): void {
    this.#controls.receiveTick(this.#world.clock.now());
    this.#turns.add({ attempt: this.#current, input: { kind: "tick" } });
    if (this.#next !== undefined) this.#turns.add({ attempt: this.#next, input: { kind: "tick" } });
  }

  #receiveInput(attempt: Attempt, input: ConnectionInput): void {
    if (attempt !== this.#current && attempt !== this.#next) return; // The attempt was abandoned meanwhile.
    if (input.kind === "socket-closed") attempt.socket = undefined;
    for (const effect of attempt.core.receiveInput(input, this.#world.clock.now())) this.#carryOut(attempt, effect);
    if (attempt === this.#current && input.kind === "socket-closed")
      this.#events.emit("close", { code: input.code, reason: input.why ?? "" });
    if (attempt === this.#current && input.kind === "frame") this.#receiveFrame(attempt, input.frame);
    if (this.#next !== undefined && !this.#current.core.isOpen) this.#abandonNext(this.#next); // From now on the current connection reconnects by itself.
    this.#setAlarm();
    this.#watchNetwork();
    this.#emitStatus();
  }

  #receiveFrame(attempt: Attempt, frame: (ConnectionInput & { kind: "frame" })["frame"]): void {
    if (frame === undefined || frame.type === "unknown") return;
    if (frame.type === "pong") {
      this.#rates?.receivePong(frame.nonce, this.#world.clock.now());
      this.#askArrivalIfDue(attempt, "pong"); // Frames sent after the PING may block all frames that would cause the next one.
    }
    this.#rooms.route(frame);
  }

  #watchNetwork(): void {
    const isWanted = this.status !== "disconnected" && this.status !== "stopped";
    if (isWanted) {
      this.#stopWatching ??= this.#world.watchNetwork?.((change) => {
        this.#turns.add({ attempt: this.#current, input: { kind: "network", change } });
      });
      return;
    }
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #carryOut(attempt: Attempt, effect: ConnectionEffect): void {
    switch (effect.kind) {
      case "ask-token":
        void this.#askToken(attempt);
        return;
      case "open-socket":
        return this.#openSocket(attempt);
      case "close-socket":
        if (attempt.socket === undefined) return;
        attempt.socket.close();
        attempt.socket = undefined;
        if (attempt === this.#current) this.#events.emit("close", null);
        return;
      case "send":
        if (effect.frame.type !== "hello") return this.send(effect.frame);
        attempt.socket?.send(encodeFrame(effect.frame));
        return;
      case "connection-open":
        if (attempt === this.#next) this.#moveTo(attempt);
        return this.#receiveOpened(effect.limits);
      case "connection-lost":
        this.#rates = undefined;
        this.#controls.clear();
        return this.#rooms.receiveLost({ kind: "connection-lost", lastReceivedAt: effect.lastReceivedAt });
      case "move":
        this.#next ??= this.#newAttempt(attempt.core.detours + 1);
        return this.#turns.add({ attempt: this.#next, input: { kind: "connect" } });
      case "stay":
        if (this.#next !== undefined) this.#abandonNext(this.#next);
        return;
      case "refused":
        if (attempt === this.#current) this.#events.emit("refused", effect.refusal);
        else this.#next = undefined;
        return;
      case "problem":
        if (attempt === this.#current) this.#events.emit("error", effect.problem);
        return;
      default:
        return assertNever(effect);
    }
  }

  #receiveOpened(limits: Limits): void {
    const now = this.#world.clock.now();
    const rates = new ClientRates(limits, now);
    rates.controls.takeTurn(now); // HELLO counts as a control frame.
    this.#rates = rates;
    this.#controls.open(rates.controls);
    this.#rooms.receiveOpened({ kind: "connection-open", limits, editRate: rates.edits, presenceRate: rates.presence });
  }

  /** Unacknowledged edits of the old connection are sent again on the new one, once the rooms are joined there. */
  #moveTo(attempt: Attempt): void {
    const old = this.#current;
    this.#current = attempt;
    this.#next = undefined;
    for (const effect of old.core.receiveInput({ kind: "disconnect" }, this.#world.clock.now())) this.#carryOut(old, effect);
  }

  #abandonNext(next: Attempt): void {
    this.#next = undefined;
    for (const effect of next.core.receiveInput({ kind: "disconnect" }, this.#world.clock.now())) this.#carryOut(next, effect);
  }

  async #askToken(attempt: Attempt): Promise<void> {
    attempt.tokensAsked += 1;
    const asked = attempt.tokensAsked;
    const input = await askToken(this.options.token);
    if (asked !== attempt.tokensAsked) return;
    if (input.kind === "token") this.#lastToken = input.token;
    this.#turns.add({ attempt, input });
  }

  #openSocket(attempt: Attempt): void {
    const receive = (input: ConnectionInput): void => this.#turns.add({ attempt, input });
    try {
      attempt.socket = this.#world.openSocket(socketUrl(this.#address, this.#rooms.first, attempt.core.detours % DETOURS_MAX), {
        opened: () => receive({ kind: "socket-opened" }),
        received: (bytes) => receive({ kind: "frame", frame: serverFrameOf(bytes) }),
        closed: (code, why, retryAfterMs) => receive({ kind: "socket-closed", code, why, retryAfterMs }),
      });
    } catch {
      receive({ kind: "socket-forbidden" }); // The platform forbids the URL, see `ports.ts`.
    }
  }

  #emitStatus(): void {
    const { status } = this;
    if (status === this.#status) return;
    this.#status = status;
    this.#events.emit("status", { status, ...this.outage });
  }
}
