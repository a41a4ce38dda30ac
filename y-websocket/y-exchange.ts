/**
 * The exchange between one y-websocket client and its room, once the bridge's document of the client equals the room's.
 * The client's updates are applied to that document, from which the SDK sends them on. Edits and presence of others
 * reach the client the same way back.
 */

import * as Y from "yjs";

import { assertNever } from "../shared/assert.ts";
import type { Clock } from "../shared/time/clock.ts";
import { TokenBucket } from "../shared/limits/token-bucket.ts";
import { withinBounds } from "../shared/yjs/bounded-integration.ts";
import { checkUpdate } from "../shared/yjs/checked-update.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import { Answers, type StateRequest } from "./answers.ts";
import type { YWebsocketConfig } from "./config.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import type { YWarn } from "./ports.ts";
import { encodeAwareness, encodeDenied, encodeSyncAnswer, encodeSyncRequest, encodeUpdate, type YMessage } from "./protocol.ts";
import type { YAwareness } from "./y-awareness.ts";
import { Y_CLOSE, type YConnection } from "./y-connection.ts";

export type YExchangeOptions = Pick<
  YWebsocketConfig,
  "yAnswerBytesBurst" | "yAnswerBytesPerSecond" | "yUpdateBytesBurst" | "yUpdateBytesPerSecond"
>;
export type YExchangeParts = {
  readonly doc: Y.Doc;
  readonly room: Pick<YjsProvider, "room" | "rights" | "awareness">;
  readonly awareness: YAwareness;
  readonly connection: YConnection;
};
export type YExchangeDeps = { readonly clock: Clock; readonly warn: YWarn; readonly metrics: YWebsocketMetrics };

/** Half of the time after which a client considers a silent server, or another client without an update, as gone. */
const RENEW_MS = 15_000;
/** Cost of an update beside its bytes. */
const UPDATE_BYTES = 1_024;
/** Size of an update without content. */
const EMPTY_UPDATE_BYTES = 2;

export class YExchange {
  readonly #doc: Y.Doc;
  readonly #room: YExchangeParts["room"];
  readonly #awareness: YAwareness;
  readonly #connection: YConnection;
  readonly #deps: YExchangeDeps;
  readonly #answers: Answers;
  readonly #updates: TokenBucket;
  /** An update was rejected. It is requested again once the client may write. */
  #hasDenied = false;
  /** The missing base is requested once, not with each update that needs it: the client may lack it too. */
  #askedForMissing = false;
  #stopRenewing = (): void => {};

  constructor({ doc, room, awareness, connection }: YExchangeParts, options: YExchangeOptions, deps: YExchangeDeps) {
    this.#doc = doc;
    this.#room = room;
    this.#awareness = awareness;
    this.#connection = connection;
    this.#deps = deps;
    const answers = { burst: options.yAnswerBytesBurst, perSecond: options.yAnswerBytesPerSecond };
    this.#answers = new Answers(answers, deps.clock, (request) => this.receiveMessage(request));
    this.#updates = new TokenBucket({ burst: options.yUpdateBytesBurst, perSecond: options.yUpdateBytesPerSecond }, deps.clock.now());
  }

  begin(): void {
    this.#doc.on("update", (update: Uint8Array, origin: unknown) => {
      if (origin !== this) this.#connection.send(encodeUpdate(update));
    });
    this.#room.awareness.on("update", ({ added, updated, removed }: Record<"added" | "updated" | "removed", number[]>) => {
      this.#sendAwareness([...added, ...updated, ...removed]);
    });
    this.#requestSync();
    this.#renew();
  }

  /** After a client has left only its updates still count. A message can close no connection but its own client's. */
  receiveMessage(message: YMessage): void {
    try {
      this.#carryOut(message);
    } catch (cause) {
      this.#deps.warn(
        { room: this.#room.room, kind: message.kind, cause },
        "cannot apply a message of a y-websocket client, closing its connection",
      );
      this.#connection.refuse(Y_CLOSE.unreadable, "cannot decode an update or a state vector, or an update exceeds a limit");
    }
  }

  /** The connection has ended: nothing more is answered or renewed. */
  stop(): void {
    this.#stopRenewing();
    this.#answers.stop();
  }

  #carryOut(message: YMessage): void {
    switch (message.kind) {
      case "sync-request":
      case "awareness-request":
        return this.#connection.isOpen ? this.#answer(message) : undefined;
      case "update":
        return this.#write(message.update);
      case "awareness":
        return this.#connection.isOpen ? this.#awareness.receiveStates(message.states) : undefined;
      case "unknown":
        return;
      default:
        return assertNever(message);
    }
  }

  #answer(request: StateRequest): void {
    if (!this.#answers.mayAnswer(request)) return this.#deps.metrics.answersLater.inc();
    const answer = this.#answerTo(request);
    this.#answers.charge(request, answer);
    this.#connection.send(answer);
  }

  #answerTo(request: StateRequest): Uint8Array {
    if (request.kind === "awareness-request") return encodeAwareness(this.#awareness.allStates());
    return encodeSyncAnswer(Y.encodeStateAsUpdate(this.#doc, request.stateVector));
  }

  #write(update: Uint8Array): void {
    if (update.byteLength <= EMPTY_UPDATE_BYTES) return;
    if (!this.#mayWrite) return this.#deny();
    if (this.#connection.isOpen && !this.#updates.take(this.#deps.clock.now(), 0)) {
      return this.#connection.refuse(Y_CLOSE.tooFast, "the client writes too fast: connect again, its changes are then sent as one update");
    }
    const check = checkUpdate(update, this.#doc); // Yjs would apply the first part of a truncated update, and may need minutes for another.
    if (check.kind === "unfit") throw new Error(`an update is refused: ${check.why}`, { cause: check.cause });
    this.#deps.metrics.updates.inc();
    withinBounds(() => Y.applyUpdate(this.#doc, update, this));
    this.#updates.spend(this.#deps.clock.now(), UPDATE_BYTES + update.byteLength + this.#pendingBytes);
    const buildsOnWhatIsMissing = this.#doc.store.pendingStructs !== null; // The base is usually an update that was rejected while the client could not write.
    if (this.#hasDenied || (buildsOnWhatIsMissing && !this.#askedForMissing)) this.#requestSync();
    this.#askedForMissing = buildsOnWhatIsMissing;
  }

  /** Yjs holds updates whose base is missing, and processes all of them again with each new update. */
  get #pendingBytes(): number {
    const { pendingStructs, pendingDs } = this.#doc.store;
    return (pendingStructs?.update.byteLength ?? 0) + (pendingDs?.byteLength ?? 0);
  }

  get #mayWrite(): boolean {
    return this.#room.rights?.write === true;
  }

  /** Sent once while the client may not write. The client can still read. */
  #deny(): void {
    const reason = "the token does not allow writing, or the permission is suspended: changes are not saved";
    if (!this.#hasDenied) this.#connection.send(encodeDenied(reason));
    this.#hasDenied = true;
  }

  /** The client answers with everything that this document lacks. */
  #requestSync(): void {
    this.#hasDenied = false;
    this.#connection.send(encodeSyncRequest(Y.encodeStateVector(this.#doc)));
  }

  #renew(): void {
    if (!this.#connection.isOpen) return;
    this.#connection.send(encodeAwareness(this.#awareness.allStates()));
    if (this.#hasDenied && this.#mayWrite) this.#requestSync();
    this.#stopRenewing = this.#deps.clock.after(RENEW_MS, () => this.#renew());
  }

  #sendAwareness(clients: readonly number[]): void {
    const states = this.#awareness.statesOf(clients);
    if (states.length > 0) this.#connection.send(encodeAwareness(states));
  }
}
