/**
 * One line to the server. Feeds `connection.ts` and carries out what it decides; what comes for rooms goes to
 * `rooms-on-line.ts`. Several providers may share one, if one token opens all their rooms. Rules COH1 to COH22.
 *
 * When the gateway goes away there are two lines for a moment: the next opens while the present one still serves,
 * and what befalls it is nobody's business until it takes over.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClientKey, Position, RoomId } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import type { ClientFrame, Limits } from "../../shared/wire/frames.ts";
import { type Address, addressOf, snapshotUrl } from "./address.ts";
import { Alarm, earlier } from "./alarm.ts";
import { Connection } from "./connection.ts";
import { ControlFrames } from "./control-frames.ts";
import type { ConnectionEffect, ConnectionInput, LineStatus, Outage } from "./connection-messages.ts";
import { assertOptions } from "../options.ts";
import * as defaults from "../defaults.ts";
import { Events } from "../events.ts";
import type { SnapshotAnswer, Socket, World } from "../ports.ts";
import { LinePaces } from "./line-paces.ts";
import type { Problem, Refusal } from "../room/problems.ts";
import { type Member, RoomsOnLine } from "./rooms-on-line.ts";
import { serverFrameOf } from "./server-frames.ts";
import { assertToken, type Token, tokenFailed, tokenInput } from "./token-answer.ts";
import { Turns } from "./turns.ts";

export type ConnectionHostOptions = {
  /** The server, as `wss://host`, `ws://host:port`, `https:` or `http:`. A path is kept. */
  readonly url: string;
  /** What the server lets this client in by. A function is asked at each connection, and again before its token expires. */
  readonly token: Token;
};

export type ConnectionEvents = {
  /** `why` and `retryInMs`: while it waits. */
  status: [{ status: LineStatus } & Partial<Outage>];
  /** The connection was refused for good. */
  refused: [Refusal];
  error: [Problem];
};

/** An attempt to reach a gateway, and what came of it. */
type Line = { readonly core: Connection; socket: Socket | undefined; tokensAsked: number };

const AGENT = "@coroom/client";

export class ConnectionHost {
  readonly #address: Address;
  readonly #token: Token;
  readonly #world: World;
  readonly #turns = new Turns<{ line: Line; input: ConnectionInput }>(({ line, input }) => this.#take(line, input));
  readonly #alarm: Alarm;
  readonly #events: Events<ConnectionEvents>;
  /** While it is wanted. */
  #stopWatching: (() => void) | undefined;
  readonly #controls = new ControlFrames((frame) => this.#sendNow(frame));
  readonly #rooms = new RoomsOnLine({
    send: (frame) => this.send(frame),
    hasJoin: (room) => this.#controls.hasJoin(room),
    withdrawJoin: (room) => this.#controls.withdrawJoin(room),
    withdrawFrom: (channel) => this.#controls.withdrawFrom(channel),
  });
  #line: Line;
  /** Undefined: there is no line. */
  #paces: LinePaces | undefined;
  /** Takes the line's place once it is open. */
  #next: Line | undefined;
  #lastToken = "";
  #status: LineStatus = "disconnected";

  constructor(options: ConnectionHostOptions, world: World) {
    assertOptions(options, "url and token");
    const { url, token } = options;
    this.#address = addressOf(url);
    assertToken(token);
    this.#token = token;
    this.#world = world;
    this.#line = this.#newLine();
    this.#alarm = new Alarm(world.clock, () => this.#tick());
    this.#events = new Events(world.reportError);
  }

  /** @internal What tells it from other servers. */
  get server(): string {
    return this.#address.http;
  }

  get status(): LineStatus {
    return this.#line.core.status;
  }

  /** Undefined: it does not wait to try again. */
  get outage(): Outage | undefined {
    const waiting = this.#line.core.waiting;
    return waiting && { why: waiting.why, retryInMs: Math.max(0, waiting.until - this.#world.clock.now()) };
  }

  on<Name extends keyof ConnectionEvents>(name: Name, listener: (...args: ConnectionEvents[Name]) => void): void {
    this.#events.on(name, listener);
  }

  once<Name extends keyof ConnectionEvents>(name: Name, listener: (...args: ConnectionEvents[Name]) => void): void {
    this.#events.once(name, listener);
  }

  off<Name extends keyof ConnectionEvents>(name: Name, listener: (...args: ConnectionEvents[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /** Connects, and stays connected until told otherwise. While it waits to try again: tries at once. */
  connect(): void {
    this.#turns.receive({ line: this.#line, input: { kind: "connect" } });
  }

  /** Closes the line; rooms on it keep what they have not sent for the next `connect()`. */
  disconnect(): void {
    this.#turns.receive({ line: this.#line, input: { kind: "disconnect" } });
  }

  /** @internal For rooms: throws where another takes part for the room. */
  assertFree(member: Member): void {
    this.#rooms.assertFree(member);
  }

  /** @internal For rooms: takes part in the connection. */
  enter(member: Member): void {
    this.#rooms.enter(member);
  }

  /** @internal For rooms: its place is free. */
  leave(member: Member): void {
    this.#rooms.leave(member);
  }

  /** @internal For rooms that left: its LEAVE, and all that came before it, is said. */
  left(member: Member): void {
    this.#rooms.left(member);
  }

  /** @internal For rooms. */
  join(member: Member, clientKey: ClientKey, position: Position): void {
    this.#rooms.join(member, clientKey, position);
  }

  /** @internal Edits and presence go out at once, as they keep to the line's paces themselves; the others once their turn comes. */
  send(frame: ClientFrame): void {
    if (frame.type === "edit" || frame.type === "presence" || frame.type === "hello") return this.#sendNow(frame);
    this.#controls.send(frame, this.#world.clock.now());
    this.#setAlarm();
  }

  /** @internal For rooms. */
  async fetchSnapshot(room: RoomId, signal: AbortSignal): Promise<SnapshotAnswer> {
    try {
      return await this.#world.fetchSnapshot(snapshotUrl(this.#address, room), this.#lastToken, signal);
    } catch (cause) {
      // Whatever the network does.
      return { kind: "unavailable", retryAfterMs: 0, why: `the server could not be reached: ${String(cause)}` };
    }
  }

  #newLine(): Line {
    const core = new Connection({ ...defaults.CONNECTION, agent: AGENT, tokenIsFixed: typeof this.#token === "string" }, () =>
      this.#world.chance.unit(),
    );
    return { core, socket: undefined, tokensAsked: 0 };
  }

  #sendNow(frame: ClientFrame): void {
    const bytes = encodeFrame(frame);
    this.#line.socket?.send(bytes);
    if (frame.type !== "edit") this.#paces?.edits.spend(bytes.byteLength, this.#world.clock.now());
    if (frame.type === "ping") this.#paces?.pinged(frame.nonce); // Counted itself, or the next would ask about it.
    this.#askArrivalIfDue(this.#line, "frame");
  }

  /** Behind what else goes out at once. */
  #askArrivalIfDue(line: Line, behind: "frame" | "pong"): void {
    if (this.#paces?.takeAsking(behind) !== true) return;
    this.#world.clock.soon(() => this.#turns.receive({ line, input: { kind: "ask-arrival" } }));
  }

  #setAlarm(): void {
    this.#alarm.setFor(earlier(this.#controls.dueAt, earlier(this.#line.core.dueAt, this.#next?.core.dueAt)));
  }

  #tick(): void {
    this.#controls.receiveTick(this.#world.clock.now());
    this.#turns.receive({ line: this.#line, input: { kind: "tick" } });
    if (this.#next !== undefined) this.#turns.receive({ line: this.#next, input: { kind: "tick" } });
  }

  #take(line: Line, input: ConnectionInput): void {
    if (line !== this.#line && line !== this.#next) return; // Given up meanwhile.
    for (const effect of line.core.receive(input, this.#world.clock.now())) this.#carryOut(line, effect);
    if (line === this.#line && input.kind === "frame" && input.frame?.type === "pong") {
      this.#paces?.receivePong(input.frame.nonce, this.#world.clock.now());
      this.#askArrivalIfDue(line, "pong"); // What went out behind the PING may hold up all that would ask.
    }
    if (line === this.#line && input.kind === "frame" && input.frame !== undefined && input.frame.type !== "unknown") {
      this.#rooms.route(input.frame);
    }
    if (this.#next !== undefined && !this.#line.core.isOpen) this.#abandonNext(this.#next); // From here on the line comes back by itself.
    this.#setAlarm();
    this.#watchNetwork();
    this.#tellStatus();
  }

  #watchNetwork(): void {
    const isWanted = this.status !== "disconnected" && this.status !== "stopped";
    if (isWanted) {
      this.#stopWatching ??= this.#world.watchNetwork?.((news) => {
        this.#turns.receive({ line: this.#line, input: { kind: "network", news } });
      });
      return;
    }
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #carryOut(line: Line, effect: ConnectionEffect): void {
    switch (effect.kind) {
      case "ask-token":
        void this.#askToken(line);
        return;
      case "open-socket":
        return this.#openSocket(line);
      case "close-socket":
        line.socket?.close();
        line.socket = undefined;
        return;
      case "send":
        if (effect.frame.type !== "hello") return this.send(effect.frame);
        line.socket?.send(encodeFrame(effect.frame));
        return;
      case "line-open":
        if (line === this.#next) this.#moveTo(line);
        return this.#receiveOpened(effect.limits);
      case "line-lost":
        this.#paces = undefined;
        this.#controls.lose();
        return this.#rooms.receiveLost({ kind: "line-lost", heardAt: effect.heardAt });
      case "move":
        this.#next ??= this.#newLine();
        return this.#turns.receive({ line: this.#next, input: { kind: "connect" } });
      case "stay":
        if (this.#next !== undefined) this.#abandonNext(this.#next);
        return;
      case "refused":
        if (line === this.#line) this.#events.emit("refused", effect.refusal);
        else this.#next = undefined;
        return;
      case "problem":
        if (line === this.#line) this.#events.emit("error", effect.problem);
        return;
      default:
        return assertNever(effect);
    }
  }

  #receiveOpened(limits: Limits): void {
    const now = this.#world.clock.now();
    const paces = new LinePaces(limits, now);
    paces.controls.takeTurn(now); // Of HELLO.
    this.#paces = paces;
    this.#controls.open(paces.controls);
    this.#rooms.receiveOpened({ kind: "line-open", limits, pace: paces.edits, presencePace: paces.presence });
  }

  /** What the old line had not acknowledged is sent again on the new one, once its rooms are joined. */
  #moveTo(line: Line): void {
    const old = this.#line;
    this.#line = line;
    this.#next = undefined;
    for (const effect of old.core.receive({ kind: "disconnect" }, this.#world.clock.now())) this.#carryOut(old, effect);
  }

  #abandonNext(next: Line): void {
    this.#next = undefined;
    for (const effect of next.core.receive({ kind: "disconnect" }, this.#world.clock.now())) this.#carryOut(next, effect);
  }

  async #askToken(line: Line): Promise<void> {
    line.tokensAsked += 1;
    const asked = line.tokensAsked;
    let input: ConnectionInput;
    try {
      input = tokenInput(await (typeof this.#token === "string" ? this.#token : this.#token()));
    } catch (cause) {
      input = tokenFailed(cause); // The application's function may fail as it likes.
    }
    if (asked !== line.tokensAsked) return;
    if (input.kind === "token") this.#lastToken = input.token;
    this.#turns.receive({ line, input });
  }

  #openSocket(line: Line): void {
    const receive = (input: ConnectionInput): void => this.#turns.receive({ line, input });
    try {
      line.socket = this.#world.openSocket(this.#address.socket, {
        opened: () => receive({ kind: "socket-opened" }),
        received: (bytes) => receive({ kind: "frame", frame: serverFrameOf(bytes) }),
        closed: (code, why, retryAfterMs) => receive({ kind: "socket-closed", code, why, retryAfterMs }),
      });
    } catch {
      receive({ kind: "socket-forbidden" }); // By the platform, as `ports.ts` says.
    }
  }

  #tellStatus(): void {
    const { status } = this;
    if (status === this.#status) return;
    this.#status = status;
    this.#events.emit("status", { status, ...this.outage });
  }
}
