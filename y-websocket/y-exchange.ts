/**
 * What one client of y-websocket and its room say to each other, from the moment on at which the client's document here is
 * the room's. The client's updates are applied to that document, and the SDK takes them on from there; what others write
 * and show reaches the client the same way back.
 */

import * as Y from "yjs";

import { assertNever } from "../shared/assert.ts";
import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import { TokenBucket } from "../shared/token-bucket.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import { Answers, type Question } from "./answers.ts";
import type { YWebsocketConfig } from "./config.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import { encodeAwareness, encodeDenied, encodeSyncAnswer, encodeSyncRequest, encodeUpdate, type YMessage } from "./protocol.ts";
import type { YAwareness } from "./y-awareness.ts";
import { Y_CLOSE, type YLine } from "./y-line.ts";

export type YExchangeOptions = Pick<
  YWebsocketConfig,
  "yAnswerBytesBurst" | "yAnswerBytesPerSecond" | "yUpdateBytesBurst" | "yUpdateBytesPerSecond"
>;
export type YExchangeParts = {
  readonly doc: Y.Doc;
  readonly room: Pick<YjsProvider, "room" | "rights" | "awareness">;
  readonly awareness: YAwareness;
  readonly line: YLine;
};
export type YExchangeDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: YWebsocketMetrics };

/** Half of the time after which a client takes a silent server, or somebody it was told of, for gone. */
const RENEW_MS = 15_000;
/** What an update costs beside its bytes. */
const UPDATE_BYTES = 1_024;
/** The size of an update that holds nothing. */
const EMPTY_UPDATE_BYTES = 2;

export class YExchange {
  readonly #doc: Y.Doc;
  readonly #room: YExchangeParts["room"];
  readonly #awareness: YAwareness;
  readonly #line: YLine;
  readonly #deps: YExchangeDeps;
  readonly #answers: Answers;
  readonly #updates: TokenBucket;
  /** Something that the client wrote was not taken, and is to be asked for once it may write again. */
  #hasDenied = false;
  /** Asked for once, and not again with each update that builds on it: the client may lack it itself. */
  #askedForMissing = false;
  #stopRenewing = (): void => {};

  constructor({ doc, room, awareness, line }: YExchangeParts, options: YExchangeOptions, deps: YExchangeDeps) {
    this.#doc = doc;
    this.#room = room;
    this.#awareness = awareness;
    this.#line = line;
    this.#deps = deps;
    const answers = { burst: options.yAnswerBytesBurst, perSecond: options.yAnswerBytesPerSecond };
    this.#answers = new Answers(answers, deps.clock, (question) => this.receive(question));
    this.#updates = new TokenBucket({ burst: options.yUpdateBytesBurst, perSecond: options.yUpdateBytesPerSecond }, deps.clock.now());
  }

  begin(): void {
    this.#doc.on("update", (update: Uint8Array, origin: unknown) => {
      if (origin !== this) this.#line.tell(encodeUpdate(update));
    });
    this.#room.awareness.on("update", ({ added, updated, removed }: Record<"added" | "updated" | "removed", number[]>) => {
      this.#tellAwareness([...added, ...updated, ...removed]);
    });
    this.#requestSync();
    this.#renew();
  }

  /** Of a client that is gone only what it wrote still counts. Nothing that a client says may end more than its own line. */
  receive(message: YMessage): void {
    try {
      this.#carryOut(message);
    } catch (cause) {
      this.#deps.log.warn({ room: this.#room.room, kind: message.kind, cause }, "what a y-websocket client said could not be taken");
      this.#line.refuse(Y_CLOSE.unreadable, "an update or a state vector did not decode");
    }
  }

  /** The line has ended: nothing more is answered or renewed. */
  stop(): void {
    this.#stopRenewing();
    this.#answers.stop();
  }

  #carryOut(message: YMessage): void {
    switch (message.kind) {
      case "sync-request":
      case "awareness-request":
        return this.#line.isOpen ? this.#answer(message) : undefined;
      case "update":
        return this.#write(message.update);
      case "awareness":
        return this.#line.isOpen ? this.#awareness.receive(message.states) : undefined;
      case "unknown":
        return;
      default:
        return assertNever(message);
    }
  }

  #answer(question: Question): void {
    if (!this.#answers.mayAnswer(question)) return this.#deps.metrics.answersLater.inc();
    const answer = this.#answerTo(question);
    this.#answers.charge(question, answer);
    this.#line.tell(answer);
  }

  #answerTo(question: Question): Uint8Array {
    if (question.kind === "awareness-request") return encodeAwareness(this.#awareness.tellAll());
    return encodeSyncAnswer(Y.encodeStateAsUpdate(this.#doc, question.stateVector));
  }

  #write(update: Uint8Array): void {
    if (update.byteLength <= EMPTY_UPDATE_BYTES) return;
    if (!this.#mayWrite) return this.#deny();
    if (this.#line.isOpen && !this.#updates.take(this.#deps.clock.now(), 0)) {
      return this.#line.refuse(Y_CLOSE.tooFast, "it writes too fast: what it has is taken as one update when it comes again");
    }
    Y.decodeUpdate(update); // Throws if the update is torn. Without this the part before the tear would be applied.
    this.#deps.metrics.updates.inc();
    Y.applyUpdate(this.#doc, update, this);
    this.#updates.spend(this.#deps.clock.now(), UPDATE_BYTES + update.byteLength + this.#pendingBytes);
    const buildsOnWhatIsMissing = this.#doc.store.pendingStructs !== null; // Most often on what it wrote while it might not.
    if (this.#hasDenied || (buildsOnWhatIsMissing && !this.#askedForMissing)) this.#requestSync();
    this.#askedForMissing = buildsOnWhatIsMissing;
  }

  /** Yjs keeps updates that build on what is missing, and goes through all of them again with each new update. */
  get #pendingBytes(): number {
    const { pendingStructs, pendingDs } = this.#doc.store;
    return (pendingStructs?.update.byteLength ?? 0) + (pendingDs?.byteLength ?? 0);
  }

  get #mayWrite(): boolean {
    return this.#room.rights?.write === true;
  }

  /** Told once for as long as it may not write. It goes on reading. */
  #deny(): void {
    const reason = "the token gives no right to write, or that is taken away for a time: what is written here is not saved";
    if (!this.#hasDenied) this.#line.tell(encodeDenied(reason));
    this.#hasDenied = true;
  }

  /** The client answers with all that it has and this document lacks. */
  #requestSync(): void {
    this.#hasDenied = false;
    this.#line.tell(encodeSyncRequest(Y.encodeStateVector(this.#doc)));
  }

  #renew(): void {
    if (!this.#line.isOpen) return;
    this.#line.tell(encodeAwareness(this.#awareness.tellAll()));
    if (this.#hasDenied && this.#mayWrite) this.#requestSync();
    this.#stopRenewing = this.#deps.clock.after(RENEW_MS, () => this.#renew());
  }

  #tellAwareness(clients: readonly number[]): void {
    const states = this.#awareness.tell(clients);
    if (states.length > 0) this.#line.tell(encodeAwareness(states));
  }
}
