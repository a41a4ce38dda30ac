/**
 * One socket of a HocuspocusProvider. Each document that it opens with a token becomes a separate client, as if it had
 * its own socket. The rejection of one document leaves the others open. Any other close ends the socket, because the
 * provider reconnects sockets and not documents. A client of any protocol that cannot be served gets the remedy in its own
 * protocol, because browsers hide the HTTP answer to a refused upgrade from pages. Rules YHP1 to YHP15.
 */

import { assertNever } from "../shared/assert.ts";
import { parseRoomId, ROOM_ID_RULE } from "../shared/ids.ts";
import { TokenBucket } from "../shared/limits/token-bucket.ts";
import type { Clock } from "../shared/time/clock.ts";
import { CLOSE } from "../shared/wire/close-codes.ts";
import { decodeFrame, encodeFrame } from "../shared/wire/codec.ts";
import type { YWebsocketConfig } from "./config.ts";
import {
  decodeHocuspocus,
  hocuspocusDialect,
  type HocuspocusMessage,
  isAuthenticated,
  roomNameOf,
  toDocument,
} from "./hocuspocus-protocol.ts";
import { EarlyMessages, type EarlyMessagesBudget } from "./held-messages.ts";
import type { YWebsocketMetrics } from "./metrics.ts";
import type { YListener, YOrigin, YRejection, YSeat, YSocket, YStranger } from "./ports.ts";
import { Y_CLOSE } from "./y-connection.ts";
import { yWebsocketDialect } from "./y-websocket-protocol.ts";

export type HocuspocusSocketOptions = Pick<YWebsocketConfig, "yHelloMsMax" | "yDocumentsMax" | "yWaitingBytesMax">;
export type HocuspocusSocketDeps = {
  /** Opens a document, or rejects it. */
  readonly enter: (seat: YSeat, socket: YSocket) => YListener | YRejection;
  readonly budget: EarlyMessagesBudget;
  readonly clock: Clock;
  readonly closes: YWebsocketMetrics["closes"];
};

const STRANGER = "the client sent no token. Pass WebsocketProvider the option params: { token }, or HocuspocusProvider the option token";
const SDK = "this port serves y-websocket and Hocuspocus clients. CoroomProvider connects to a gateway: use the gateway's URL";

/**
 * Each opened document costs a connection to the gateway, and its request has a few bytes. A page may open all its
 * documents twice at once, as React does in development.
 */
const OPENS_AT_ONCE = 2;
const OPENS_PER_SECOND = 10;
/**
 * Maximum characters of a document's name, which consists of a room and a session. Every message to the client begins with
 * this name, so a name of megabytes would make each edit as long.
 */
const DOCUMENT_LENGTH_MAX = 1_024;

export class HocuspocusSocket implements YListener {
  readonly #socket: YSocket;
  readonly #origin: YOrigin | YStranger;
  readonly #options: HocuspocusSocketOptions;
  readonly #deps: HocuspocusSocketDeps;
  readonly #documents = new Map<string, YListener>();
  readonly #held: EarlyMessages;
  readonly #opens: TokenBucket;
  #stopWaiting = (): void => {};
  #hasToken = false;
  /** A room was joined, which proves that a token is valid. */
  #isTrusted = false;
  /** Why the last document was refused. Undefined after one that was opened. */
  #refusal: string | undefined;
  #isOpen = true;

  constructor(socket: YSocket, origin: YOrigin | YStranger, options: HocuspocusSocketOptions, deps: HocuspocusSocketDeps) {
    this.#socket = socket;
    this.#origin = origin;
    this.#options = options;
    this.#deps = deps;
    this.#held = new EarlyMessages(deps.budget);
    this.#opens = new TokenBucket({ burst: OPENS_AT_ONCE * options.yDocumentsMax, perSecond: OPENS_PER_SECOND }, deps.clock.now());
    this.#awaitDocument();
  }

  receiveBytes(count: number): boolean {
    if (this.#isTrusted || this.#held.holdPart(count)) return true;
    this.#close(Y_CLOSE.overloaded, "clients sent too much before their rooms were open: connect again later");
    return false;
  }

  receiveMessage(bytes: Uint8Array): void {
    this.#held.dropPart();
    if (!this.#isOpen) return;
    const message = decodeHocuspocus(bytes);
    if ("remedy" in this.#origin) return this.#refuseStranger(bytes, message, this.#origin.remedy);
    if (message === undefined || (!this.#hasToken && message.kind !== "token")) return this.#refuseStranger(bytes, message, STRANGER);
    switch (message.kind) {
      case "token":
        return this.#open(message.document, message.token);
      case "content":
        return this.#documents.get(message.document)?.receiveMessage(message.bytes);
      case "close":
        return this.#leave(message.document);
      case "pong":
        return;
      default:
        assertNever(message);
    }
  }

  receiveClosed(): void {
    this.#isOpen = false;
    this.#stopWaiting();
    this.#held.dropPart();
    for (const document of this.#documents.keys()) this.#leave(document);
  }

  /** A provider that reconnects uses its new token. A new token for an open document has no effect. */
  #open(document: string, token: string): void {
    this.#hasToken = true;
    if (this.#documents.has(document)) return;
    if (document.length > DOCUMENT_LENGTH_MAX)
      return this.#close(Y_CLOSE.unreadable, `a document's name, with its session, has ${DOCUMENT_LENGTH_MAX} characters at most`);
    const room = parseRoomId(roomNameOf(document));
    if (room === undefined || token === "")
      return this.#refuse(document, `pass a room's name and a token to HocuspocusProvider, as \`name\` and \`token\`; ${ROOM_ID_RULE}`);
    const { yDocumentsMax } = this.#options;
    if (this.#documents.size >= yDocumentsMax)
      return this.#refuse(document, `a socket opens ${yDocumentsMax} documents at most: close some, or open this one on another socket`);
    if (!this.#opens.take(this.#deps.clock.now()))
      return this.#close(Y_CLOSE.tooFast, "the client opens documents too fast: connect again later");
    const listener = this.#deps.enter({ ...this.#origin, room, token }, this.#socketOf(document));
    if (typeof listener === "string")
      return this.#close(Y_CLOSE.overloaded, "this server admits no more documents now: connect again later");
    this.#stopWaiting();
    this.#refusal = undefined;
    this.#documents.set(document, listener);
  }

  /** The other documents stay open. A closed socket would open all its documents again, and have too many again. */
  #refuse(document: string, why: string): void {
    if (this.#socket.waitingBytes > this.#options.yWaitingBytesMax)
      return this.#close(Y_CLOSE.overloaded, "the client does not read its answers");
    this.#refusal = why;
    this.#deps.closes.inc({ code: String(Y_CLOSE.refused) });
    this.#socket.send(toDocument(document, hocuspocusDialect.refused(why)!));
  }

  /** Without this limit, sockets without a document could take the places of clients. */
  #awaitDocument(): void {
    this.#stopWaiting = this.#deps.clock.after(this.#options.yHelloMsMax, () =>
      this.#close(Y_CLOSE.silent, this.#refusal ?? "the client opened no document in time: connect again"),
    );
  }

  #leave(document: string): void {
    const listener = this.#documents.get(document);
    const isLast = this.#documents.delete(document) && this.#documents.size === 0;
    if (isLast && this.#isOpen) this.#awaitDocument();
    listener?.receiveClosed();
  }

  #socketOf(document: string): YSocket {
    const socket = this.#socket;
    return {
      send: (bytes) => {
        this.#isTrusted ||= isAuthenticated(bytes);
        socket.send(toDocument(document, bytes));
      },
      close: (code, reason) => {
        if (code !== Y_CLOSE.refused) return this.#end(code, reason);
        this.#refusal = reason;
        this.#leave(document);
      },
      get waitingBytes() {
        return socket.waitingBytes;
      },
    };
  }

  /** HocuspocusProvider 2 and y-websocket before 3.1 do not show the reason of a close, but each shows a refusal. */
  #refuseStranger(bytes: Uint8Array, message: HocuspocusMessage | undefined, why: string): void {
    if (decodeFrame(bytes)?.type === "hello") {
      const { code } = CLOSE.badFrame;
      this.#socket.send(encodeFrame({ type: "error", code, message: SDK }));
      return this.#close(code, SDK);
    }
    if (message === undefined) return this.#close(Y_CLOSE.unreadable, why);
    const document = "document" in message ? message.document : "";
    const refused = hocuspocusDialect.refused(why)!;
    // A message of y-websocket begins with 0, which is also the length of an empty name.
    if (document.length <= DOCUMENT_LENGTH_MAX)
      this.#socket.send(bytes[0] === 0 ? yWebsocketDialect.refused(why)! : toDocument(document, refused));
    this.#close(Y_CLOSE.refused, why);
  }

  #close(code: number, reason: string): void {
    if (!this.#isOpen) return;
    this.#deps.closes.inc({ code: String(code) });
    this.#end(code, reason);
  }

  #end(code: number, reason: string): void {
    this.#isOpen = false;
    this.#stopWaiting();
    this.#socket.close(code, reason);
  }
}
