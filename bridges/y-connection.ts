/**
 * The connection to one client: sends messages, and closes it with a close code. A closed client counts as disconnected
 * at once, although its answer to the close may take long.
 */

import type { YWebsocketMetrics } from "./metrics.ts";
import type { YSocket } from "./ports.ts";
import type { YDialect } from "./y-websocket-protocol.ts";

/** On codes 4400 to 4499, clients of y-websocket 3.1 and later do not reconnect by themselves. */
export const Y_CLOSE = {
  unreadable: 4400,
  refused: 4401,
  tokenExpired: 4501,
  silent: 4508,
  tooFast: 4529,
  goingAway: 1001,
  overloaded: 1013,
} as const;

/** `left`: the client closed the socket. `refused`: the bridge closed it. */
export type YConnectionEnd = "left" | "refused";

export type YConnectionOptions = { readonly yWaitingBytesMax: number };

export class YConnection {
  readonly #socket: YSocket;
  readonly #refused: YDialect["refused"];
  readonly #options: YConnectionOptions;
  readonly #closes: YWebsocketMetrics["closes"];
  readonly #onEnd: (end: YConnectionEnd) => void;
  #isOpen = true;

  /** `onEnd` is called once, before the socket is closed. */
  constructor(
    socket: YSocket,
    { refused }: Pick<YDialect, "refused">,
    options: YConnectionOptions,
    closes: YWebsocketMetrics["closes"],
    onEnd: (end: YConnectionEnd) => void,
  ) {
    this.#socket = socket;
    this.#refused = refused;
    this.#options = options;
    this.#closes = closes;
    this.#onEnd = onEnd;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Bytes that the client has not read yet. */
  get waitingBytes(): number {
    return this.#socket.waitingBytes;
  }

  /** One message may be as long as the document, so the limit applies to the bytes that were unread before it. */
  send(bytes: Uint8Array | undefined): void {
    if (!this.#isOpen || bytes === undefined) return;
    if (this.#socket.waitingBytes > this.#options.yWaitingBytesMax) {
      return this.refuseSlow();
    }
    this.#socket.send(bytes);
  }

  refuseSlow(): void {
    this.refuse(Y_CLOSE.overloaded, "it does not take what it is sent");
  }

  /** Edits that the client sent earlier are still saved. */
  refuse(code: number, reason: string): void {
    if (!this.#isOpen) return;
    const refused = code === Y_CLOSE.refused ? this.#refused(reason) : undefined;
    if (refused !== undefined) this.#socket.send(refused);
    this.#closes.inc({ code: String(code) });
    this.#end("refused");
    this.#socket.close(code, reason);
  }

  receiveClosed(): void {
    if (this.#isOpen) this.#end("left");
  }

  #end(end: YConnectionEnd): void {
    this.#isOpen = false;
    this.#onEnd(end);
  }
}
