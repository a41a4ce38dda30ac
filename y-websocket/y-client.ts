/**
 * One y-websocket client in one room, from its first message until what it wrote is saved. A document of its own, which
 * the SDK keeps equal to the room's, answers it. Messages are held until that document is synced: otherwise the client
 * would see an empty document and fill it again. The client takes part under its own Yjs client id, so that its other
 * tabs, which exchange awareness among themselves, do not show it twice. The room is therefore opened once the client
 * has sent that id, with its first messages. Rules YCL1 to YCL23, YWS1 to YWS21.
 */

import * as Y from "yjs";

import type { Clock } from "../shared/time/clock.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import type { YWebsocketConfig } from "./config.ts";
import { EarlyMessages, type EarlyMessagesBudget } from "./held-messages.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import type { YSocket, YWarn } from "./ports.ts";
import { decodeYMessage, type YMessage } from "./protocol.ts";
import { YAwareness } from "./y-awareness.ts";
import { YExchange, type YExchangeOptions } from "./y-exchange.ts";
import { type YConnectionEnd, Y_CLOSE, YConnection, type YConnectionOptions } from "./y-connection.ts";

export type YRoom = Pick<YjsProvider, "room" | "rights" | "status" | "synced" | "saved" | "unsavedEdits" | "awareness" | "on" | "destroy">;
export type YClientOptions = YConnectionOptions & YExchangeOptions & Pick<YWebsocketConfig, "yHelloMsMax" | "ySaveMsMax">;
export type YClientDeps = {
  /** The room's awareness uses the document's `clientID` at the time of this call. */
  readonly openRoom: (doc: Y.Doc) => YRoom;
  readonly budget: EarlyMessagesBudget;
  readonly clock: Clock;
  readonly warn: YWarn;
  readonly metrics: YWebsocketMetrics;
};

/** The connection's state is separate: a room is left after its connection, once what the client wrote is saved. */
type State =
  /** The client has not sent its Yjs client id yet: no room is open. */
  | { readonly kind: "greeting"; readonly stopWaiting: () => void }
  /** The room is open, and the document is not synced yet. */
  | { readonly kind: "entering"; readonly room: YRoom; readonly awareness: YAwareness }
  | { readonly kind: "in-step"; readonly room: YRoom; readonly exchange: YExchange }
  | { readonly kind: "ended" };

/** A client sends its id directly after its first message. A client without an awareness sends none. */
const NUMBER_MS_MAX = 50;
const SAVE_LOOK_MS = 100;
const TOO_MUCH_HELD = "clients sent too much before their rooms were open: connect again later";

export class YClient {
  readonly #options: YClientOptions;
  readonly #deps: YClientDeps;
  readonly #doc = new Y.Doc();
  readonly #connection: YConnection;
  readonly #held: EarlyMessages;
  #state: State;

  constructor(socket: YSocket, options: YClientOptions, deps: YClientDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#connection = new YConnection(socket, options, deps.metrics.closes, (end) => this.#receiveConnectionEnd(end));
    this.#held = new EarlyMessages(deps.budget);
    // Without this limit a client would keep its place without a verified token.
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

  /** The socket is closed. Calls `onLeft` once what the client wrote is in the log, or the time for that is over. */
  receiveClosed(onLeft: () => void): void {
    this.#connection.receiveClosed();
    this.#held.dropPart();
    if (this.#state.kind === "greeting" && this.#held.all.some((bytes) => decodeYMessage(bytes)?.kind === "update")) this.#enter(undefined);
    const end = (): void => {
      this.#state = { kind: "ended" };
      this.#held.release();
      this.#doc.destroy();
      onLeft();
    };
    if (this.#state.kind === "entering" || this.#state.kind === "in-step") return this.#leaveOnceSaved(this.#state.room, end);
    end();
  }

  /** The first message starts a short wait for the awareness message, which has the client's id. */
  #receiveGreeting(message: YMessage, stopWaiting: () => void): void {
    if (message.kind === "awareness") return this.#enter(message.states[0]?.client);
    if (this.#held.all.length > 1) return;
    stopWaiting();
    this.#state = { kind: "greeting", stopWaiting: this.#deps.clock.after(NUMBER_MS_MAX, () => this.#enter(undefined)) };
  }

  #enter(yjsClient: number | undefined): void {
    if (this.#state.kind === "greeting") this.#state.stopWaiting();
    const ownNumber = this.#doc.clientID;
    if (yjsClient !== undefined) this.#doc.clientID = yjsClient;
    const room = this.#deps.openRoom(this.#doc);
    this.#doc.clientID = ownNumber; // The client's updates must have another origin id than the document's own changes.
    this.#state = { kind: "entering", room, awareness: new YAwareness(room.awareness, yjsClient, this.#deps.clock) };
    room.on("refused", ({ kind, message }) => {
      // The token expired during the session. The client may have a new one, so it may reconnect.
      const wasIn = kind === "token-expired" && this.#state.kind === "in-step";
      this.#connection.refuse(wasIn ? Y_CLOSE.tokenExpired : Y_CLOSE.refused, message);
    });
    room.on("error", ({ kind, message }) => {
      this.#deps.metrics.problems.inc({ kind });
      this.#deps.warn({ room: room.room, kind }, message);
      if (kind === "document-stuck")
        this.#connection.refuse(Y_CLOSE.overloaded, "the bridge's copy of the document failed: connect again later");
    });
    room.on("synced", (synced) => synced && this.#comeInStep());
    if (room.synced) this.#comeInStep();
  }

  #comeInStep(): void {
    if (this.#state.kind !== "entering") return;
    const { room, awareness } = this.#state;
    const exchange = new YExchange({ doc: this.#doc, room, awareness, connection: this.#connection }, this.#options, this.#deps);
    this.#state = { kind: "in-step", room, exchange };
    exchange.begin();
    this.#held.dropPart();
    for (const bytes of this.#held.release()) exchange.receiveMessage(decodeYMessage(bytes)!); // It was decoded successfully when it arrived.
  }

  #receiveConnectionEnd(end: YConnectionEnd): void {
    if (this.#state.kind === "greeting") this.#state.stopWaiting();
    if (this.#state.kind === "in-step") this.#state.exchange.stop();
    if (this.#state.kind === "entering" || this.#state.kind === "in-step") this.#state.room.awareness.setLocalState(null);
    if (end === "refused") this.#held.release(); // What a client that left has written is still saved.
  }

  #leaveOnceSaved(room: YRoom, onLeft: () => void): void {
    const { clock } = this.#deps;
    const until = clock.now() + this.#options.ySaveMsMax;
    const look = (): void => {
      if (!this.#isSaved(room) && room.status !== "stopped" && clock.now() < until) {
        clock.after(SAVE_LOOK_MS, look);
        return;
      }
      if (!this.#isSaved(room)) this.#logUnsaved(room);
      room.destroy();
      onLeft();
    };
    look();
  }

  #logUnsaved(room: YRoom): void {
    const { unsavedEdits } = room;
    const isAcknowledged = unsavedEdits === 0 && this.#held.all.length === 0;
    const what = isAcknowledged ? "its edits may depend on edits that are not saved" : "not all its edits were saved";
    this.#deps.warn(
      { room: room.room, unsavedEdits },
      `a y-websocket client left and ${what} in time. The client still has them and sends them when it connects again.`,
    );
  }

  #isSaved(room: YRoom): boolean {
    return room.saved && this.#held.all.length === 0;
  }
}
