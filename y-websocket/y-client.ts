/**
 * One client of y-websocket in one room: a document of its own, kept the same as the room by the SDK, answers it in its
 * protocol. Rules YCL1 to YCL19, YWS1 to YWS19.
 *
 * What it says is held until the document is the room's: answered sooner, it would take an empty document for the room,
 * and fill it anew. It takes part under the number that it has in Yjs, so that tabs beside it, which tell it of each other
 * by themselves, are not there twice; so it is let in once it has said that, which it does with its first words.
 */

import * as Y from "yjs";

import { assertNever } from "../shared/assert.ts";
import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import { TokenBucket } from "../shared/token-bucket.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import { Answers, type Question } from "./answers.ts";
import type { YWebsocketConfig } from "./config.ts";
import type { HeldBudget } from "./held-budget.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import { decodeYMessage, encodeAwareness, encodeDenied, encodeSyncAnswer, encodeSyncRequest, encodeUpdate, type YMessage } from "./protocol.ts";
import { YAwareness } from "./y-awareness.ts";

export interface YSocket {
  send(bytes: Uint8Array): void;
  close(code: number, reason: string): void;
  /** What the client has not taken yet. */
  readonly waitingBytes: number;
}

export type YRoom = Pick<YjsProvider, "room" | "rights" | "status" | "synced" | "saved" | "unsavedEdits" | "awareness" | "on" | "destroy">;
export type YClientOptions = Pick<YWebsocketConfig, "yHelloMsMax" | "yWaitingBytesMax" | "yAnswerBytesBurst" | "yAnswerBytesPerSecond" | "yUpdateBytesBurst" | "yUpdateBytesPerSecond" | "ySaveMsMax">;
/** `openRoom`: the document's awareness is to be of the Yjs client whose number the document has at that moment. */
export type YClientDeps = { readonly openRoom: (doc: Y.Doc) => YRoom; readonly budget: HeldBudget; readonly clock: Clock; readonly log: Log; readonly metrics: YWebsocketMetrics };

/** 4400 to 4499: y-websocket 3.1 and later do not come again by themselves. */
export const Y_CLOSE = { unreadable: 4400, refused: 4401, tokenExpired: 4501, silent: 4508, tooFast: 4529, goingAway: 1001, overloaded: 1013 } as const;

/** It says its number in one go with its first words; without an awareness it has none to say. */
const NUMBER_MS_MAX = 50;
/** Half of the time after which a client takes its server, or whom it was told of, for gone. */
const RENEW_MS = 15_000;
const SAVE_LOOK_MS = 100;
/** What an update costs beside its bytes. */
const UPDATE_BYTES = 1_024;
/** Of an update that holds nothing. */
const EMPTY_UPDATE_BYTES = 2;
const UNREADABLE = "an update or a state vector did not decode";

export class YClient {
  readonly #socket: YSocket;
  readonly #options: YClientOptions;
  readonly #deps: YClientDeps;
  readonly #doc = new Y.Doc();
  readonly #answers: Answers;
  readonly #updates: TokenBucket;
  #room: YRoom | undefined;
  #awareness: YAwareness | undefined;
  /** As it came: decoded, awareness would weigh many times that. */
  #held: Uint8Array[] = [];
  #isInStep = false;
  #isThere = true;
  #hasEnded = false;
  /** For its first words, then for its number, then to tell it something again. */
  #stopWaiting: () => void;
  /** Something that it wrote was not taken. */
  #lacksItsWords = false;
  /** Once: it may lack that itself. */
  #askedForMissing = false;

  constructor(socket: YSocket, options: YClientOptions, deps: YClientDeps) {
    this.#socket = socket;
    this.#options = options;
    this.#deps = deps;
    this.#answers = new Answers({ burst: options.yAnswerBytesBurst, perSecond: options.yAnswerBytesPerSecond }, deps.clock, (question) => this.#take(question));
    this.#updates = new TokenBucket({ burst: options.yUpdateBytesBurst, perSecond: options.yUpdateBytesPerSecond }, deps.clock.now());
    // Nobody has looked at its token yet, and it has a place.
    this.#stopWaiting = deps.clock.after(options.yHelloMsMax, () => this.#refuse(Y_CLOSE.silent, "nothing was said in time"));
  }

  receive(bytes: Uint8Array): void {
    if (!this.#isThere) return;
    const message = decodeYMessage(bytes);
    if (message === undefined) return this.#refuse(Y_CLOSE.unreadable, "a message did not decode: this speaks y-websocket's protocol");
    if (this.#isInStep) return this.#take(message);
    if (!this.#deps.budget.take(bytes)) return this.#refuse(Y_CLOSE.overloaded, "too much was said before rooms were there");
    this.#held.push(bytes.slice()); // It may be a part of much that was read at once, which would be held with it.
    if (this.#room !== undefined) return;
    if (message.kind === "awareness") return this.#enter(message.states[0]?.client);
    if (this.#held.length > 1) return;
    this.#stopWaiting();
    this.#stopWaiting = this.#deps.clock.after(NUMBER_MS_MAX, () => this.#enter(undefined));
  }

  /** The socket is closed. Resolves once what the client wrote is in the log, or the time for that is up. */
  async receiveClosed(): Promise<void> {
    this.#leave();
    if (this.#room === undefined && !this.#hasEnded && this.#held.some((bytes) => decodeYMessage(bytes)?.kind === "update")) this.#enter(undefined);
    const room = this.#room;
    if (room !== undefined) {
      await this.#settled(room);
      if (!room.saved || this.#held.length > 0) this.#deps.log.warn({ room: room.room, unsavedEdits: room.unsavedEdits }, "a y-websocket client left, and not all that it wrote was saved in time: it has it still");
      room.destroy();
    }
    this.#hasEnded = true;
    this.#letGo();
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
    // Its token held until now: it may have a new one, and comes again with that.
    room.on("refused", ({ kind, message }) => this.#refuse(kind === "token-expired" && this.#isInStep ? Y_CLOSE.tokenExpired : Y_CLOSE.refused, message));
    room.on("error", ({ kind, message }) => {
      this.#deps.metrics.problems.inc({ kind });
      this.#deps.log.warn({ room: room.room, kind }, message);
    });
    room.on("synced", (synced) => synced && this.#comeInStep());
    if (room.synced) this.#comeInStep();
  }

  #comeInStep(): void {
    if (this.#isInStep || this.#hasEnded) return;
    this.#isInStep = true;
    this.#doc.on("update", (update: Uint8Array, origin: unknown) => {
      if (origin !== this) this.#tell(encodeUpdate(update));
    });
    this.#room!.awareness.on("update", ({ added, updated, removed }: Record<"added" | "updated" | "removed", number[]>) => this.#tellAwareness([...added, ...updated, ...removed]));
    this.#askForWords();
    this.#renew();
    const held = this.#held;
    this.#letGo();
    for (const bytes of held) if (!this.#hasEnded) this.#take(decodeYMessage(bytes)!); // It was decoded once, when it came.
  }

  /** Nothing that a client says may end more than its own line. */
  #take(message: YMessage): void {
    try {
      this.#carryOut(message);
    } catch (cause) {
      this.#deps.log.warn({ room: this.#room!.room, kind: message.kind, cause }, "what a y-websocket client said could not be taken");
      this.#refuse(Y_CLOSE.unreadable, UNREADABLE);
    }
  }

  #carryOut(message: YMessage): void {
    switch (message.kind) {
      case "sync-request":
      case "awareness-request":
        return this.#isThere ? this.#answer(message) : undefined;
      case "update":
        return this.#write(message.update);
      case "awareness":
        return this.#isThere ? this.#awareness!.receive(message.states) : undefined;
      case "unknown":
        return;
      default:
        return assertNever(message);
    }
  }

  #answer(question: Question): void {
    if (!this.#answers.mayAnswer(question)) return this.#deps.metrics.answersLater.inc();
    const answer = question.kind === "sync-request" ? encodeSyncAnswer(Y.encodeStateAsUpdate(this.#doc, question.stateVector)) : encodeAwareness(this.#awareness!.tellAll());
    this.#answers.charge(question, answer);
    this.#tell(answer);
  }

  #write(update: Uint8Array): void {
    if (update.byteLength <= EMPTY_UPDATE_BYTES) return;
    if (!this.#mayWrite) return this.#deny();
    if (this.#isThere && !this.#updates.take(this.#deps.clock.now(), 0)) return this.#refuse(Y_CLOSE.tooFast, "it writes too fast: what it has is taken as one update when it comes again");
    Y.decodeUpdate(update); // Throws: applied as it is read, what is torn would be written in part.
    this.#deps.metrics.updates.inc();
    Y.applyUpdate(this.#doc, update, this);
    this.#updates.spend(this.#deps.clock.now(), UPDATE_BYTES + update.byteLength + this.#pendingBytes);
    const buildsOnWhatIsMissing = this.#doc.store.pendingStructs !== null; // What it wrote while it might not, above all.
    if (this.#lacksItsWords || (buildsOnWhatIsMissing && !this.#askedForMissing)) this.#askForWords();
    this.#askedForMissing = buildsOnWhatIsMissing;
  }

  /** What builds on what is missing is gone through with each update. */
  get #pendingBytes(): number {
    const { pendingStructs, pendingDs } = this.#doc.store;
    return (pendingStructs?.update.byteLength ?? 0) + (pendingDs?.byteLength ?? 0);
  }

  get #mayWrite(): boolean {
    return this.#room!.rights?.write === true;
  }

  /** Once, for as long as it may not: it goes on reading. */
  #deny(): void {
    if (!this.#lacksItsWords) this.#tell(encodeDenied("the token gives no right to write, or that is taken away for a time: what is written here is not saved"));
    this.#lacksItsWords = true;
  }

  /** All that it has and the room has not. */
  #askForWords(): void {
    this.#lacksItsWords = false;
    this.#tell(encodeSyncRequest(Y.encodeStateVector(this.#doc)));
  }

  #renew(): void {
    if (!this.#isThere) return;
    this.#tell(encodeAwareness(this.#awareness!.tellAll()));
    if (this.#lacksItsWords && this.#mayWrite) this.#askForWords();
    this.#stopWaiting = this.#deps.clock.after(RENEW_MS, () => this.#renew());
  }

  #tellAwareness(clients: readonly number[]): void {
    const states = this.#awareness!.tell(clients);
    if (states.length > 0) this.#tell(encodeAwareness(states));
  }

  /** One message may be as long as the document: what counts is what was not taken before it. */
  #tell(bytes: Uint8Array): void {
    if (!this.#isThere) return;
    if (this.#socket.waitingBytes > this.#options.yWaitingBytesMax) return this.#refuse(Y_CLOSE.overloaded, "it does not take what it is sent");
    this.#socket.send(bytes);
  }

  /** What it said until then, and was taken, is saved all the same. */
  #refuse(code: number, reason: string): void {
    if (!this.#isThere) return;
    if (code === Y_CLOSE.refused) this.#socket.send(encodeDenied(reason));
    this.#deps.metrics.closes.inc({ code: String(code) });
    this.#leave();
    this.#letGo();
    this.#socket.close(code, reason);
  }

  /** Nobody sees it any more, though it may take long to answer the close, or never does. */
  #leave(): void {
    if (!this.#isThere) return;
    this.#isThere = false;
    this.#stopWaiting();
    this.#answers.stop();
    this.#room?.awareness.setLocalState(null);
  }

  #letGo(): void {
    this.#deps.budget.giveBack(this.#held);
    this.#held = [];
  }

  #settled(room: YRoom): Promise<void> {
    const { clock } = this.#deps;
    const until = clock.now() + this.#options.ySaveMsMax;
    return new Promise((resolve) => {
      const look = (): void => {
        if ((room.saved && this.#held.length === 0) || room.status === "stopped" || clock.now() >= until) resolve();
        else clock.after(SAVE_LOOK_MS, look);
      };
      look();
    });
  }
}
