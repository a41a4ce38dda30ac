/**
 * The exchange between one client and its room, once the bridge's copy of the room is complete. The client's updates
 * become edits of this client. When the log has them, the copy sends them to all clients, including their author, so an
 * update that comes back is saved. An update that builds on content that the room lacks is not sent. Instead, the
 * client is asked for all missing content, and its answer is sent.
 */

import * as Y from "yjs";

import { assertNever } from "../shared/assert.ts";
import type { Clock } from "../shared/time/clock.ts";
import { TokenBucket } from "../shared/limits/token-bucket.ts";
import { isComplete } from "../shared/yjs/update-needs.ts";
import type { RoomConnection } from "../client/room/room-connection-host.ts";
import { Answers, type StateRequest } from "./answers.ts";
import type { AnswerReader, AnswerTurns } from "./answer-turns.ts";
import type { YWebsocketConfig } from "./config.ts";
import { JobQueue } from "./job-queue.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import type { YjsWork, YWarn } from "./ports.ts";
import type { RoomCopy } from "./room-copy.ts";
import type { ReaderOwner } from "./unread-data.ts";
import type { AcceptableUpdate, UpdateFacts } from "./update-facts.ts";
import {
  encodeAwareness,
  encodeStateless,
  encodeSyncAnswer,
  encodeSyncRequest,
  type YDialect,
  type YMessage,
} from "./y-websocket-protocol.ts";
import type { YAwareness } from "./y-awareness.ts";
import { Y_CLOSE, type YConnection } from "./y-connection.ts";

export type YExchangeOptions = Pick<
  YWebsocketConfig,
  "yAnswerBytesBurst" | "yAnswerBytesPerSecond" | "yUpdateBytesBurst" | "yUpdateBytesPerSecond"
>;
type WrittenRoom = Pick<RoomConnection, "room" | "rights" | "unsavedEdits" | "send">;
type YExchangeParts = {
  readonly copy: RoomCopy;
  readonly room: WrittenRoom;
  readonly awareness: YAwareness;
  readonly connection: YConnection;
  readonly dialect: YDialect;
  /** Sends a message to the other clients of the room. False: the room is above its rate. */
  readonly relay: (message: Uint8Array) => boolean;
};
export type YExchangeDeps = {
  readonly clock: Clock;
  readonly warn: YWarn;
  readonly metrics: YWebsocketMetrics;
  readonly work: YjsWork;
  readonly turns: AnswerTurns;
  /** The user of the token. */
  readonly owner: ReaderOwner;
};

/** Half of the time after which a client treats a silent server, or another client without an update, as gone. */
const RENEW_MS = 15_000;
/** Cost of an update in addition to its bytes. */
const UPDATE_BYTES = 1_024;
/** Cost of comparing an answer with one range of deleted content. Measured: 10,000 ranges take 10 ms on a busy core. */
const DELETED_RANGE_BYTES = 64;
/** Cost of a request for each byte of the room's content, because a thread reads all of it. */
const CONTENT_SHARE = 1 / 8;
/** Cost of a request for which edits are integrated. Within the limits on Yjs, a thread may need two seconds for 14 KB. */
const INTEGRATION_BYTES = 1024 ** 2;
/** Size of an update without content. */
const EMPTY_UPDATE_BYTES = 2;
/**
 * Updates that are reported as saved at once. One saved edit may report hundreds of thousands: the updates without their
 * base, which are sent with the missing content. Per second these are more than the messages that a socket may send.
 */
const REPORTS_AT_ONCE = 1_000;
const REPORTS_MS = 100;

export class YExchange {
  readonly #parts: YExchangeParts;
  readonly #deps: YExchangeDeps;
  readonly #answers: Answers;
  readonly #reader: AnswerReader;
  readonly #updates: TokenBucket;
  readonly #checks = new JobQueue();
  #checkCount = 0;
  /** Exclusive ends of this client's content. The copy receives it shortly afterwards. */
  readonly #written = new Map<number, number>();
  #sentCount = 0;
  /** Pairs, in order: a number of saved edits, and the number of updates to report as saved when it is reached. */
  #reports: { readonly edits: number; updates: number }[] = [];
  /** Number of saved updates that are not reported yet. */
  #unreportedCount = 0;
  /** The next reports wait. */
  #stopReporting: (() => void) | undefined;
  /** An update was not accepted. It is requested again once the client may write. */
  #hasDenied = false;
  /** The missing base is requested once, not with each update that needs it: the client may lack it too. */
  #hasAskedForMissing = false;
  #stopRenewing = (): void => {};

  constructor(parts: YExchangeParts, options: YExchangeOptions, deps: YExchangeDeps) {
    this.#parts = parts;
    this.#deps = deps;
    const answers = { burst: options.yAnswerBytesBurst, perSecond: options.yAnswerBytesPerSecond };
    this.#answers = new Answers(answers, deps.clock, (request) => this.receiveMessage(request));
    this.#reader = readerOf(parts.connection, deps.owner);
    this.#updates = new TokenBucket({ burst: options.yUpdateBytesBurst, perSecond: options.yUpdateBytesPerSecond }, deps.clock.now());
  }

  begin(): void {
    const { connection, dialect } = this.#parts;
    connection.send(dialect.joined(this.#mayWrite));
    this.#requestSync();
    this.#renew();
  }

  /** True: all updates of the client were checked, and the log has those that were accepted. */
  get saved(): boolean {
    return this.#checkCount === 0 && this.#parts.room.unsavedEdits === 0;
  }

  /** After a client has left, only its updates count. A message can close only its own client's connection. */
  receiveMessage(message: YMessage): void {
    try {
      this.#carryOut(message);
    } catch (cause) {
      this.#refuseUnreadable(message.kind, cause);
    }
  }

  receivePresence(clients: readonly number[]): void {
    const states = this.#parts.awareness.statesOf(clients);
    if (states.length > 0) this.#parts.connection.send(encodeAwareness(states));
  }

  /** Edits of this client are saved. */
  receiveSaved(): void {
    const saved = this.#sentCount - this.#parts.room.unsavedEdits;
    while (this.#reports.length > 0 && this.#reports[0]!.edits <= saved) this.#unreportedCount += this.#reports.shift()!.updates;
    if (this.#stopReporting === undefined) this.#sendReports();
  }

  /** An edit was not sent, because it is too large or too many wait. Later updates may build on it. */
  receiveNotSent(): void {
    this.#hasDenied = true;
    this.#written.clear();
    const updates = this.#reports.reduce((sum, report) => sum + report.updates, 0);
    this.#reports = updates === 0 ? [] : [{ edits: this.#sentCount + 1, updates }];
  }

  /** The connection has ended: nothing more is answered or renewed. */
  stop(): void {
    this.#stopRenewing();
    this.#stopReporting?.();
    this.#answers.stop();
    this.#parts.awareness.stop();
  }

  #carryOut(message: YMessage): void {
    const { connection, awareness } = this.#parts;
    switch (message.kind) {
      case "sync-request":
      case "awareness-request":
        return connection.isOpen ? this.#answer(message) : undefined;
      case "update":
        return this.#write(message);
      case "awareness":
        return connection.isOpen ? awareness.receiveStates(message.bytes) : undefined;
      case "stateless":
        return this.#relay(message.payload);
      case "unknown":
        return;
      default:
        return assertNever(message);
    }
  }

  #answer(request: StateRequest): void {
    if (!this.#answers.mayAnswer(request)) return this.#deps.metrics.answersLater.inc();
    if (request.kind === "awareness-request") return this.#sendAnswer(request, encodeAwareness(this.#parts.awareness.allStates()));
    this.#deps.turns.add(this.#reader, this.#parts.copy.bytes, (sent) => this.#answerSync(request.stateVector, request, sent));
  }

  #answerSync(stateVector: Uint8Array, request: StateRequest, sent: (bytes: number) => void): void {
    const { copy, connection } = this.#parts;
    copy.answer(stateVector, (merged) => {
      if (merged === undefined) return connection.refuse(Y_CLOSE.overloaded, "the room's content cannot be read: connect again later");
      const readBytes = copy.bytes * CONTENT_SHARE;
      const answer = encodeSyncAnswer(merged.answer);
      this.#sendAnswer(request, answer, merged.isLinear ? readBytes : readBytes + INTEGRATION_BYTES);
      sent(answer.byteLength);
    });
  }

  #sendAnswer(request: StateRequest, answer: Uint8Array, workBytes = 0): void {
    this.#answers.charge(request, answer, workBytes);
    this.#parts.connection.send(answer);
  }

  #write({ update, isAnswer }: YMessage & { readonly kind: "update" }): void {
    if (update.byteLength <= EMPTY_UPDATE_BYTES) return this.#report(this.#sentCount);
    if (!this.#mayWrite && !isAnswer) return this.#deny();
    if (this.#parts.connection.isOpen && !this.#updates.take(this.#deps.clock.now(), 0)) {
      const why = "the client writes too fast: connect again, its changes are then sent as one update";
      return this.#parts.connection.refuse(Y_CLOSE.tooFast, why);
    }
    this.#updates.spend(this.#deps.clock.now(), UPDATE_BYTES + update.byteLength);
    this.#checkCount += 1;
    this.#checks.add((done) =>
      this.#check(update, (facts) => {
        this.#checkCount -= 1;
        if (facts === undefined) this.#giveUp();
        else if (facts.kind === "fit") this.#receiveFit(update, facts, isAnswer);
        else this.#refuseUnreadable("update", facts.why);
        done();
      }),
    );
  }

  /**
   * A client that has left may never send the update again, so a check whose thread failed is repeated once. After a check
   * that took too long, the time for saving (`ySaveMsMax`) is usually over.
   */
  #check(update: Uint8Array, receive: (facts: UpdateFacts | undefined) => void): void {
    const { work } = this.#deps;
    work.check(update, (facts) => (facts === undefined && !this.#parts.connection.isOpen ? work.check(update, receive) : receive(facts)));
  }

  #giveUp(): void {
    this.#deps.warn(
      { room: this.#parts.room.room },
      "an update of a client could not be checked and is not saved, unless the client sends it again",
    );
    this.#parts.connection.refuse(Y_CLOSE.overloaded, "an update could not be checked: connect again later");
  }

  /** Each text is sent to all other clients, so it counts like an update for its writer, and for each of them in the room. */
  #relay(payload: string): void {
    if (!this.#mayWrite || !this.#updates.take(this.#deps.clock.now(), 0)) return this.#deps.metrics.relaysDropped.inc();
    const message = encodeStateless(payload);
    this.#updates.spend(this.#deps.clock.now(), UPDATE_BYTES + message.byteLength);
    if (!this.#parts.relay(message)) this.#deps.metrics.relaysDropped.inc();
  }

  #receiveFit(update: Uint8Array, facts: AcceptableUpdate, isAnswer: boolean): void {
    if (isAnswer && this.#hasNothingNew(facts)) return this.#report(this.#sentCount);
    if (!this.#mayWrite) return this.#deny();
    this.#deps.metrics.updates.inc();
    const isMissing = !isComplete(facts.needs, (client) => this.#knownOf(client));
    // A client that also lacks the base has sent everything that it has. Its update waits in the room's documents for
    // the base.
    if (isMissing && !isAnswer) {
      this.#plan(this.#sentCount + 1); // The answer to the request includes this update.
      if (!this.#hasAskedForMissing) this.#requestSync();
      this.#hasAskedForMissing = true;
      return;
    }
    this.#hasAskedForMissing = isMissing;
    if (this.#hasDenied) this.#requestSync();
    for (const { client, end } of facts.runs) this.#written.set(client, Math.max(end, this.#knownOf(client)));
    this.#sentCount += 1;
    this.#plan(this.#sentCount); // Before `send`, which may report at once that the edit is not accepted.
    this.#parts.room.send(update);
    this.receiveSaved();
  }

  #hasNothingNew(facts: AcceptableUpdate): boolean {
    const { copy } = this.#parts;
    const hasNothingNew = copy.contains(facts);
    this.#updates.spend(this.#deps.clock.now(), copy.deletedRanges * DELETED_RANGE_BYTES);
    return hasNothingNew;
  }

  #knownOf(client: number): number {
    return Math.max(this.#parts.copy.clockOf(client), this.#written.get(client) ?? 0);
  }

  #report(edits: number): void {
    this.#plan(edits);
    this.receiveSaved();
  }

  #plan(edits: number): void {
    const last = this.#reports.at(-1);
    if (last?.edits === edits) last.updates += 1;
    else this.#reports.push({ edits, updates: 1 });
  }

  #sendReports(): void {
    const { connection, dialect } = this.#parts;
    const count = connection.isOpen ? Math.min(this.#unreportedCount, REPORTS_AT_ONCE) : 0;
    this.#unreportedCount -= count;
    for (let report = 0; report < count; report++) connection.send(dialect.written(true));
    this.#stopReporting = count < REPORTS_AT_ONCE ? undefined : this.#deps.clock.after(REPORTS_MS, () => this.#sendReports());
  }

  #refuseUnreadable(kind: YMessage["kind"], cause: unknown): void {
    this.#deps.warn({ room: this.#parts.room.room, kind, cause }, "cannot apply a message of a client, closing its connection");
    const why = "cannot decode an update or a state vector, or an update exceeds a limit";
    this.#parts.connection.refuse(Y_CLOSE.unreadable, why);
  }

  get #mayWrite(): boolean {
    return this.#parts.room.rights.write;
  }

  /** The client can still read. */
  #deny(): void {
    const { connection, dialect } = this.#parts;
    const reason = "the token does not allow writing, or the permission is suspended: changes are not saved";
    if (!this.#hasDenied) connection.send(dialect.readOnly(reason));
    this.#hasDenied = true;
    this.#plan(this.#sentCount + 1);
    connection.send(dialect.written(false));
  }

  /** The client answers with all content that the copy lacks and the client has not sent yet. */
  #requestSync(): void {
    this.#hasDenied = false;
    const known = new Map(this.#parts.copy.clocks);
    for (const client of this.#written.keys()) known.set(client, this.#knownOf(client));
    this.#parts.connection.send(encodeSyncRequest(Y.encodeStateVector(known)));
  }

  #renew(): void {
    const { connection, awareness } = this.#parts;
    if (!connection.isOpen) return;
    connection.send(encodeAwareness(awareness.allStates()));
    if (this.#hasDenied && this.#mayWrite) this.#requestSync();
    this.#stopRenewing = this.#deps.clock.after(RENEW_MS, () => this.#renew());
  }
}

function readerOf(connection: YConnection, owner: ReaderOwner): AnswerReader {
  return {
    owner,
    get isOpen() {
      return connection.isOpen;
    },
    get waitingBytes() {
      return connection.waitingBytes;
    },
    close: () => connection.refuseSlow(),
  };
}
