/**
 * One client of y-websocket in one room, from its first words until what it wrote is saved. It is answered by a document of
 * its own, which the SDK keeps the same as the room's. Rules YCL1 to YCL21, YWS1 to YWS21.
 *
 * What it says is held until that document is the room's: answered sooner, it would take an empty document for the room,
 * and fill it anew. It takes part under the number that it has in Yjs, so that tabs beside it, which tell it of each other
 * by themselves, are not there twice; so it is let in once it has said that number, which it does with its first words.
 */

import * as Y from "yjs";

import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import type { YWebsocketConfig } from "./config.ts";
import type { HeldBudget } from "./held-budget.ts";
import { HeldMessages } from "./held-messages.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import type { YSocket } from "./ports.ts";
import { decodeYMessage, type YMessage } from "./protocol.ts";
import { YAwareness } from "./y-awareness.ts";
import { YExchange, type YExchangeOptions } from "./y-exchange.ts";
import { type LineEnd, Y_CLOSE, YLine, type YLineOptions } from "./y-line.ts";

export type YRoom = Pick<YjsProvider, "room" | "rights" | "status" | "synced" | "saved" | "unsavedEdits" | "awareness" | "on" | "destroy">;
export type YClientOptions = YLineOptions & YExchangeOptions & Pick<YWebsocketConfig, "yHelloMsMax" | "ySaveMsMax">;
export type YClientDeps = {
  /** The room's awareness is to be of the Yjs client whose number the document has at that moment. */
  readonly openRoom: (doc: Y.Doc) => YRoom;
  readonly budget: HeldBudget;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: YWebsocketMetrics;
};

/** Whether its line is open is not in here: a room is left later than its line, once what the client wrote is saved. */
type State =
  /** It has said nothing, or not yet its number: no room is open. */
  | { readonly kind: "greeting"; readonly stopWaiting: () => void }
  /** Its room is open, and its document is not the room's yet. */
  | { readonly kind: "entering"; readonly room: YRoom; readonly awareness: YAwareness }
  | { readonly kind: "in-step"; readonly room: YRoom; readonly exchange: YExchange }
  | { readonly kind: "ended" };

/** It says its number in one go with its first words. A client without an awareness has none to say. */
const NUMBER_MS_MAX = 50;
const SAVE_LOOK_MS = 100;
const TOO_MUCH_SAID = "too much was said before rooms were there";

export class YClient {
  readonly #options: YClientOptions;
  readonly #deps: YClientDeps;
  readonly #doc = new Y.Doc();
  readonly #line: YLine;
  readonly #held: HeldMessages;
  #state: State;

  constructor(socket: YSocket, options: YClientOptions, deps: YClientDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#line = new YLine(socket, options, deps.metrics.closes, (end) => this.#receiveLineEnd(end));
    this.#held = new HeldMessages(deps.budget);
    // Nobody has looked at its token yet, and it has a place already.
    const stopWaiting = deps.clock.after(options.yHelloMsMax, () => this.#line.refuse(Y_CLOSE.silent, "nothing was said in time"));
    this.#state = { kind: "greeting", stopWaiting };
  }

  /** The line has brought so much, of which messages are made. False: no more of it is to be read. */
  receiveBytes(count: number): boolean {
    if (this.#state.kind === "in-step" || this.#held.holdPart(count)) return true;
    this.#line.refuse(Y_CLOSE.overloaded, TOO_MUCH_SAID);
    return false;
  }

  receive(bytes: Uint8Array): void {
    this.#held.dropPart();
    if (!this.#line.isOpen) return;
    const message = decodeYMessage(bytes);
    if (message === undefined) return this.#line.refuse(Y_CLOSE.unreadable, "a message did not decode: this speaks y-websocket's protocol");
    if (this.#state.kind === "in-step") return this.#state.exchange.receive(message);
    if (!this.#held.hold(bytes)) return this.#line.refuse(Y_CLOSE.overloaded, TOO_MUCH_SAID);
    if (this.#state.kind === "greeting") this.#receiveGreeting(message, this.#state.stopWaiting);
  }

  /** The socket is closed. Resolves once what the client wrote is in the log, or the time for that is up. */
  async receiveClosed(): Promise<void> {
    this.#line.receiveClosed();
    this.#held.dropPart();
    if (this.#state.kind === "greeting" && this.#held.all.some((bytes) => decodeYMessage(bytes)?.kind === "update")) this.#enter(undefined);
    if (this.#state.kind === "entering" || this.#state.kind === "in-step") await this.#leave(this.#state.room);
    this.#state = { kind: "ended" };
    this.#held.release();
    this.#doc.destroy();
  }

  /** Its first words start a short wait for its number, and its awareness says that. */
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
    this.#doc.clientID = ownNumber; // What the client writes is to come from elsewhere to this document.
    this.#state = { kind: "entering", room, awareness: new YAwareness(room.awareness, yjsClient, this.#deps.clock) };
    room.on("refused", ({ kind, message }) => {
      // A token that held until now has expired: the client may have a new one, and comes again with that.
      const wasIn = kind === "token-expired" && this.#state.kind === "in-step";
      this.#line.refuse(wasIn ? Y_CLOSE.tokenExpired : Y_CLOSE.refused, message);
    });
    room.on("error", ({ kind, message }) => {
      this.#deps.metrics.problems.inc({ kind });
      this.#deps.log.warn({ room: room.room, kind }, message);
    });
    room.on("synced", (synced) => synced && this.#comeInStep());
    if (room.synced) this.#comeInStep();
  }

  #comeInStep(): void {
    if (this.#state.kind !== "entering") return;
    const { room, awareness } = this.#state;
    const exchange = new YExchange({ doc: this.#doc, room, awareness, line: this.#line }, this.#options, this.#deps);
    this.#state = { kind: "in-step", room, exchange };
    exchange.begin();
    this.#held.dropPart();
    for (const bytes of this.#held.release()) exchange.receive(decodeYMessage(bytes)!); // It was decoded once, when it came.
  }

  #receiveLineEnd(end: LineEnd): void {
    if (this.#state.kind === "greeting") this.#state.stopWaiting();
    if (this.#state.kind === "in-step") this.#state.exchange.stop();
    if (this.#state.kind === "entering" || this.#state.kind === "in-step") this.#state.room.awareness.setLocalState(null);
    if (end === "refused") this.#held.release(); // Of a client that left, what it wrote is still written.
  }

  async #leave(room: YRoom): Promise<void> {
    await this.#settled(room);
    if (!this.#isSaved(room)) this.#tellUnsaved(room);
    room.destroy();
  }

  #tellUnsaved(room: YRoom): void {
    const { unsavedEdits } = room;
    const isAcknowledged = unsavedEdits === 0 && this.#held.all.length === 0;
    const what = isAcknowledged ? "what it wrote may build upon edits that were not saved" : "not all that it wrote was saved";
    this.#deps.log.warn({ room: room.room, unsavedEdits }, `a y-websocket client left, and ${what} in time: it has that still`);
  }

  #isSaved(room: YRoom): boolean {
    return room.saved && this.#held.all.length === 0;
  }

  #settled(room: YRoom): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.now() + this.#options.ySaveMsMax;
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.#isSaved(room) || room.status === "stopped" || clock.now() >= until) resolve();
        else clock.after(SAVE_LOOK_MS, look);
      };
      look();
    });
  }
}
