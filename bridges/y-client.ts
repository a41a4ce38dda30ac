/**
 * One client in one room, from its first message until its edits are saved. For the gateway it is a client of the SDK
 * with its own token. The bridge's copy of the room, which all clients of the room share, answers it. Messages are held
 * until that copy is complete: otherwise the client would see an empty document and fill it again. The client uses its
 * own Yjs client id in the room. Otherwise its other tabs, which exchange awareness among themselves, would show it
 * twice. So the room is opened once the client has sent that id, with its first messages. Rules YCL1 to YCL42, YWS1 to
 * YWS24, YUC1 to YUC5.
 */

import { CLOSE } from "../shared/wire/close-codes.ts";
import type { RoomAwareness } from "../client/presence/awareness.ts";
import type { RoomConnection } from "../client/room/room-connection-host.ts";
import type { KnownEdit } from "../client/room/room-messages.ts";
import type { YWebsocketConfig } from "./config.ts";
import { EarlyMessages, type EarlyMessagesBudget } from "./held-messages.ts";
import type { YSocket } from "./ports.ts";
import type { CopyReader, RoomCopy } from "./room-copy.ts";
import { decodeYMessage, type YDialect, type YMessage } from "./y-websocket-protocol.ts";
import { YAwareness } from "./y-awareness.ts";
import { YExchange, type YExchangeDeps, type YExchangeOptions } from "./y-exchange.ts";
import { type YConnectionEnd, Y_CLOSE, YConnection, type YConnectionOptions } from "./y-connection.ts";

export type YRoom = Pick<
  RoomConnection,
  "room" | "rights" | "status" | "outage" | "synced" | "unsavedEdits" | "position" | "on" | "send" | "destroy"
> & {
  readonly awareness: RoomAwareness;
};
type YClientOptions = YConnectionOptions & YExchangeOptions & Pick<YWebsocketConfig, "yHelloMsMax" | "ySaveMsMax">;
type YClientDeps = YExchangeDeps & {
  /** `yjsClient`: the client's id in the awareness, if it has sent one. `since`: the content that the copy already has. */
  readonly openRoom: (yjsClient: number | undefined, since: KnownEdit | undefined) => YRoom;
  readonly takeCopy: () => { readonly copy: RoomCopy; readonly release: () => void };
  /** A gateway has accepted the client's token. Called again after each entry. */
  readonly receiveAccepted: () => void;
  readonly dialect: YDialect;
  readonly budget: EarlyMessagesBudget;
};

/** A room that the client has joined or is joining. */
type OpenRoom = {
  readonly room: YRoom;
  readonly copy: RoomCopy;
  readonly relay: (message: Uint8Array) => boolean;
  readonly leave: () => void;
};

/** The connection has a separate state, because the room is left after the connection ends, once the client's edits are saved. */
type State =
  /** The client has not sent its Yjs client id yet: no room is open. */
  | { readonly kind: "greeting"; readonly stopWaiting: () => void }
  /** The room is open, and the copy may not be complete yet. */
  | (OpenRoom & { readonly kind: "entering"; readonly awareness: YAwareness })
  | (OpenRoom & { readonly kind: "in-step"; readonly exchange: YExchange })
  | { readonly kind: "ended" };

/** A client sends its Yjs client id directly after its first message. A client without an awareness sends none. */
const YJS_ID_MS_MAX = 50;
const SAVE_LOOK_MS = 100;
const TOO_MUCH_HELD = "clients sent too much before their rooms were open: connect again later";

export class YClient {
  readonly #options: YClientOptions;
  readonly #deps: YClientDeps;
  readonly #connection: YConnection;
  readonly #held: EarlyMessages;
  #state: State;

  constructor(socket: YSocket, options: YClientOptions, deps: YClientDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#connection = new YConnection(socket, deps.dialect, options, deps.metrics.closes, (end) => this.#receiveConnectionEnd(end));
    this.#held = new EarlyMessages(deps.budget);
    // Without this limit a client could count for a long time without a verified token.
    const stopWaiting = deps.clock.after(options.yHelloMsMax, () =>
      this.#connection.refuse(Y_CLOSE.silent, "the client sent nothing in time: connect again"),
    );
    this.#state = { kind: "greeting", stopWaiting };
  }

  /** Counts received bytes of incomplete messages. False: read no more. */
  receiveBytes(count: number): boolean {
    if (this.#state.kind === "in-step" || this.#held.holdPart(count)) return true;
    this.#connection.refuse(Y_CLOSE.overloaded, TOO_MUCH_HELD);
    return false;
  }

  receiveMessage(bytes: Uint8Array): void {
    this.#held.dropPart();
    if (!this.#connection.isOpen) return;
    const message = decodeYMessage(bytes);
    if (message === undefined)
      return this.#connection.refuse(Y_CLOSE.unreadable, "a message did not decode: this speaks y-websocket's protocol");
    if (this.#state.kind === "in-step") return this.#state.exchange.receiveMessage(message);
    if (!this.#held.hold(bytes)) return this.#connection.refuse(Y_CLOSE.overloaded, TOO_MUCH_HELD);
    if (this.#state.kind === "greeting") this.#receiveGreeting(message, this.#state.stopWaiting);
  }

  /** The socket is closed. Calls `onLeft` once the log has the client's edits, or the time for that is over. */
  receiveClosed(onLeft: () => void): void {
    this.#connection.receiveClosed();
    this.#held.dropPart();
    const hasWritten = this.#held.all.some((bytes) => decodeYMessage(bytes)?.kind === "update");
    if (!hasWritten) this.#held.release();
    else if (this.#state.kind === "greeting") this.#enter(undefined);
    const end = (): void => {
      this.#state = { kind: "ended" };
      this.#held.release();
      onLeft();
    };
    if (this.#state.kind === "entering" || this.#state.kind === "in-step") return this.#leaveOnceSaved(this.#state, end);
    end();
  }

  /** The first message starts a short wait for the awareness message, which has the client's id. */
  #receiveGreeting(message: YMessage, stopWaiting: () => void): void {
    if (message.kind === "awareness") return this.#enter(message.first);
    if (this.#held.all.length > 1) return;
    stopWaiting();
    this.#state = { kind: "greeting", stopWaiting: this.#deps.clock.after(YJS_ID_MS_MAX, () => this.#enter(undefined)) };
  }

  #enter(yjsClient: number | undefined): void {
    if (this.#state.kind === "greeting") this.#state.stopWaiting();
    const { copy, release } = this.#deps.takeCopy();
    const room = this.#deps.openRoom(yjsClient, copy.since);
    const reader: CopyReader = {
      receiveUpdate: (message) => this.#isInStep && this.#connection.send(message),
      receiveRelayed: (message) => this.#isInStep && this.#connection.send(this.#deps.dialect.relayed(message)),
      receiveLost: (why) => this.#connection.refuse(Y_CLOSE.overloaded, why),
    };
    copy.enter(reader);
    const relay = (message: Uint8Array): boolean => copy.relay(message, reader, this.#deps.clock.now());
    const leave = (): void => {
      copy.leave(reader);
      room.destroy();
      release();
    };
    this.#state = { kind: "entering", room, copy, relay, leave, awareness: new YAwareness(room.awareness, yjsClient, this.#deps.clock) };
    this.#listen(room, copy);
    if (room.synced) this.#comeInStep();
  }

  #listen(room: YRoom, copy: RoomCopy): void {
    room.on("snapshot", (snapshot) => copy.receiveSnapshot(snapshot));
    room.on("edits", (edits) => {
      copy.receiveEdits(edits, room.position);
      this.#exchange?.receiveSaved();
    });
    room.on("saved", () => this.#exchange?.receiveSaved());
    room.on("rolled-back", () => this.#receiveRolledBack(copy));
    room.on("synced", (synced) => synced && this.#comeInStep());
    room.on("refused", ({ kind, message }) => {
      // The token expired during the session. The client may have a new one, so it may reconnect.
      this.#connection.refuse(kind === "token-expired" && this.#isInStep ? Y_CLOSE.tokenExpired : Y_CLOSE.refused, message);
    });
    room.on("connection-close", (close) => close?.code === CLOSE.banned.code && this.#receiveBan());
    room.on("error", (problem) => {
      const { kind, message } = problem;
      this.#deps.metrics.problems.inc({ kind });
      this.#deps.warn({ room: room.room, kind }, message);
      // The user is banned from the room for a time, which the client would not learn while its room waits for the end.
      if (kind === "room-unavailable" && problem.reason === "not-allowed") this.#connection.refuse(Y_CLOSE.refused, message);
      if (kind === "edit-too-large" || kind === "outbox-full") this.#exchange?.receiveNotSent();
    });
    room.awareness.on("update", ({ added, updated, removed }: Record<"added" | "updated" | "removed", number[]>) => {
      this.#exchange?.receivePresence([...added, ...updated, ...removed]);
    });
  }

  /**
   * A client that enters continues after the copy's newest edit. If the log does not have that edit, the copy may be
   * valid, so only this client starts again: the clients in step, whose connections follow the log, decide whether the
   * copy is lost. With a copy that has edits which the log lost, it would ignore the room's next edits.
   */
  #receiveRolledBack(copy: RoomCopy): void {
    const why = "the server lost edits of the room: connect again";
    if (this.#isInStep) copy.lose(why);
    else this.#connection.refuse(Y_CLOSE.overloaded, why);
  }

  /**
   * The user or the address is banned, and the room waits for the end of the ban. The copy still follows the room for
   * other clients, so this client must leave it. After its reconnect it receives nothing until the ban has ended.
   */
  #receiveBan(): void {
    if (this.#isInStep) this.#connection.refuse(Y_CLOSE.overloaded, "banned for a time: connect again and wait");
  }

  get #exchange(): YExchange | undefined {
    return this.#state.kind === "in-step" ? this.#state.exchange : undefined;
  }

  get #isInStep(): boolean {
    return this.#state.kind === "in-step";
  }

  /** The room's edits have arrived. The copy may still wait for the thread that reads them. */
  #comeInStep(): void {
    if (this.#state.kind !== "entering") return;
    this.#deps.receiveAccepted();
    this.#state.copy.settled(() => this.#beginExchange());
  }

  #beginExchange(): void {
    if (this.#state.kind !== "entering" || !this.#state.room.synced) return; // The room may have been lost meanwhile.
    const parts = { ...this.#state, connection: this.#connection, dialect: this.#deps.dialect };
    const exchange = new YExchange(parts, this.#options, this.#deps);
    this.#state = { ...this.#state, kind: "in-step", exchange };
    exchange.begin();
    this.#held.dropPart();
    for (const bytes of this.#held.release()) exchange.receiveMessage(decodeYMessage(bytes)!); // Each message was decoded successfully when it arrived.
  }

  #receiveConnectionEnd(end: YConnectionEnd): void {
    if (this.#state.kind === "greeting") this.#state.stopWaiting();
    if (this.#state.kind === "in-step") this.#state.exchange.stop();
    if (this.#state.kind === "entering" || this.#state.kind === "in-step") this.#state.room.awareness.setLocalState(null);
    if (end === "refused") this.#held.release(); // The edits of a client that left are still saved.
  }

  #leaveOnceSaved({ room, leave }: OpenRoom, onLeft: () => void): void {
    const { clock } = this.#deps;
    const until = clock.now() + this.#options.ySaveMsMax;
    const look = (): void => {
      if (!this.#isSaved && !isShut(room) && clock.now() < until) {
        clock.after(SAVE_LOOK_MS, look);
        return;
      }
      if (!this.#isSaved) this.#logUnsaved(room);
      leave();
      onLeft();
    };
    look();
  }

  #logUnsaved({ room, unsavedEdits }: YRoom): void {
    const why = "a client left and not all its edits were saved in time. The client still has them and sends them when it connects again.";
    this.#deps.warn({ room, unsavedEdits }, why);
  }

  /** The log has the client's edits, or did not accept them. */
  get #isSaved(): boolean {
    return this.#held.all.length === 0 && (this.#exchange?.saved ?? true);
  }
}

/** The room accepts no edit of the client: the room is closed permanently, or the client's user is banned from it. */
function isShut({ status, outage }: YRoom): boolean {
  return status === "stopped" || outage?.reason === "not-allowed";
}
