/**
 * One client of y-websocket in one room: a document of its own, kept the same as the room by the SDK, answers it in its
 * protocol. Rules YCL1 to YCL7, YWS1 to YWS10.
 *
 * What it says is held until the document is the room's: answered sooner, it would take an empty document for the room,
 * and fill it anew. It takes part under the number that it has in Yjs, so that tabs beside it, which tell it of each other
 * by themselves, are not there twice; so it is let in once it has said that, which it does at once.
 */

import * as Y from "yjs";

import { assertNever } from "../shared/assert.ts";
import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import { decodeYMessage, encodeAwareness, encodeDenied, encodeSyncAnswer, encodeSyncRequest, encodeUpdate, type YMessage } from "./protocol.ts";
import { YAwareness } from "./y-awareness.ts";

export interface YSocket {
  send(bytes: Uint8Array): void;
  close(code: number, reason: string): void;
  /** What the client has not taken yet. */
  readonly waitingBytes: number;
}

export type YClientOptions = { readonly yHeldBytesMax: number; readonly yWaitingBytesMax: number; readonly ySaveMsMax: number };
export type YRoom = Pick<YjsProvider, "room" | "rights" | "status" | "synced" | "saved" | "unsavedEdits" | "awareness" | "on" | "destroy">;
/** `openRoom`: the document's awareness is to be of the Yjs client whose number the document has at that moment. */
export type YClientDeps = { readonly openRoom: (doc: Y.Doc) => YRoom; readonly clock: Clock; readonly log: Log; readonly metrics: YWebsocketMetrics };

/** 4400 to 4499: y-websocket 3.1 and later do not come again by themselves. */
export const Y_CLOSE = { unreadable: 4400, refused: 4401, goingAway: 1001, overloaded: 1013 } as const;

/** A client without an awareness says nothing of itself. */
const NUMBER_MS_MAX = 250;
/** Half of the time after which a client takes its server, or whom it was told of, for gone. */
const RENEW_MS = 15_000;
const SAVE_LOOK_MS = 100;
/** Of an update that holds nothing. */
const EMPTY_UPDATE_BYTES = 2;

export class YClient {
  readonly #socket: YSocket;
  readonly #options: YClientOptions;
  readonly #deps: YClientDeps;
  readonly #doc = new Y.Doc();
  #room: YRoom | undefined;
  #awareness: YAwareness | undefined;
  #held: YMessage[] = [];
  #heldBytes = 0;
  #state: "entering" | "in-step" | "ended" = "entering";
  #stopWaiting: () => void;
  #wasDenied = false;

  constructor(socket: YSocket, options: YClientOptions, deps: YClientDeps) {
    this.#socket = socket;
    this.#options = options;
    this.#deps = deps;
    this.#stopWaiting = deps.clock.after(NUMBER_MS_MAX, () => this.#enter(undefined));
  }

  receive(bytes: Uint8Array): void {
    if (this.#state === "ended") return;
    const message = decodeYMessage(bytes);
    if (message === undefined) return this.#refuse(Y_CLOSE.unreadable, "a message did not decode: this speaks y-websocket's protocol");
    if (this.#state === "in-step") return this.#take(message);
    this.#heldBytes += bytes.byteLength;
    if (this.#heldBytes > this.#options.yHeldBytesMax) return this.#refuse(Y_CLOSE.overloaded, "too much was said before the room was there");
    this.#held.push(message);
    if (message.kind === "awareness" && this.#room === undefined) this.#enter(message.states[0]?.client);
  }

  /** The socket is closed. Resolves once what the client wrote is in the log, or the time for that is up. */
  async receiveClosed(): Promise<void> {
    this.#end();
    const room = this.#room;
    if (room === undefined) return;
    room.awareness.setLocalState(null);
    await this.#saved(room);
    if (!room.saved) this.#deps.log.warn({ room: room.room, unsavedEdits: room.unsavedEdits }, "a y-websocket client left, and not all that it wrote was saved in time: it has it still");
    room.destroy();
    this.#doc.destroy();
  }

  #enter(yjsClient: number | undefined): void {
    this.#stopWaiting();
    const ownNumber = this.#doc.clientID;
    if (yjsClient !== undefined) this.#doc.clientID = yjsClient;
    const room = this.#deps.openRoom(this.#doc);
    this.#doc.clientID = ownNumber; // What the client writes is to come from elsewhere to this document.
    this.#room = room;
    this.#awareness = new YAwareness(room.awareness, yjsClient, this.#deps.clock);
    room.on("refused", ({ message }) => this.#refuse(Y_CLOSE.refused, message));
    room.on("error", ({ kind, message }) => {
      this.#deps.metrics.problems.inc({ kind });
      this.#deps.log.warn({ room: room.room, kind }, message);
    });
    room.on("synced", (synced) => synced && this.#comeInStep());
    if (room.synced) this.#comeInStep();
  }

  #comeInStep(): void {
    if (this.#state !== "entering") return;
    this.#state = "in-step";
    this.#doc.on("update", (update: Uint8Array, origin: unknown) => {
      if (origin !== this) this.#tell(encodeUpdate(update));
    });
    this.#room!.awareness.on("update", ({ added, updated, removed }: Record<"added" | "updated" | "removed", number[]>) => this.#tellAwareness([...added, ...updated, ...removed]));
    this.#tell(encodeSyncRequest(Y.encodeStateVector(this.#doc)));
    this.#renew();
    for (const message of this.#held.splice(0)) if (this.#isInStep) this.#take(message);
  }

  #take(message: YMessage): void {
    switch (message.kind) {
      case "sync-request":
        return this.#answer(message.stateVector);
      case "update":
        return this.#write(message.update);
      case "awareness":
        return this.#awareness!.receive(message.states);
      case "awareness-request":
        return this.#tell(encodeAwareness(this.#awareness!.tellAll()));
      case "unknown":
        return;
      default:
        return assertNever(message);
    }
  }

  #answer(stateVector: Uint8Array): void {
    const update = attempt(() => Y.encodeStateAsUpdate(this.#doc, stateVector));
    if (update === undefined) return this.#refuse(Y_CLOSE.unreadable, "a state vector did not decode");
    this.#tell(encodeSyncAnswer(update));
  }

  #write(update: Uint8Array): void {
    if (update.byteLength <= EMPTY_UPDATE_BYTES) return;
    if (this.#room!.rights?.write !== true) return this.#deny();
    // All of it first: applied as it is read, a broken update would be written in part.
    if (attempt(() => Y.decodeUpdate(update)) === undefined) return this.#refuse(Y_CLOSE.unreadable, "an update did not decode");
    this.#deps.metrics.updates.inc();
    Y.applyUpdate(this.#doc, update, this);
  }

  /** Once: it goes on reading. */
  #deny(): void {
    if (!this.#wasDenied) this.#tell(encodeDenied("the token gives no right to write: what is written here is not saved"));
    this.#wasDenied = true;
  }

  #renew(): void {
    this.#tell(encodeAwareness(this.#awareness!.tellAll()));
    this.#stopWaiting = this.#deps.clock.after(RENEW_MS, () => this.#renew());
  }

  #tellAwareness(clients: readonly number[]): void {
    const states = this.#awareness!.tell(clients);
    if (states.length > 0) this.#tell(encodeAwareness(states));
  }

  #tell(bytes: Uint8Array): void {
    if (this.#state === "ended") return;
    this.#socket.send(bytes);
    if (this.#socket.waitingBytes > this.#options.yWaitingBytesMax) this.#refuse(Y_CLOSE.overloaded, "it does not take what it is sent");
  }

  #refuse(code: number, reason: string): void {
    if (this.#state === "ended") return;
    if (code === Y_CLOSE.refused) this.#socket.send(encodeDenied(reason));
    this.#deps.metrics.closes.inc({ code: String(code) });
    this.#end();
    this.#socket.close(code, reason);
  }

  #end(): void {
    this.#state = "ended";
    this.#stopWaiting();
    this.#held = [];
  }

  get #isInStep(): boolean {
    return this.#state === "in-step";
  }

  #saved(room: YRoom): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.now() + this.#options.ySaveMsMax;
    return new Promise((resolve) => {
      const look = (): void => {
        if (room.saved || room.status === "stopped" || clock.now() >= until) resolve();
        else clock.after(SAVE_LOOK_MS, look);
      };
      look();
    });
  }
}

/** Undefined where Yjs throws: the bytes are none of its own. */
function attempt<Result>(run: () => Result): Result | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
