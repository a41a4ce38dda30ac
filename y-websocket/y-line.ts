/**
 * The line to one client of y-websocket for as long as it is open: what the client is told, and with which code it is
 * closed from here. Whoever is closed leaves at once, though it may take long to answer the close, or never does.
 */

import type { YWebsocketMetrics } from "./metrics.ts";
import type { YSocket } from "./ports.ts";
import { encodeDenied } from "./protocol.ts";

/** 4400 to 4499: clients of y-websocket 3.1 and later do not reconnect by themselves. */
export const Y_CLOSE = {
  unreadable: 4400,
  refused: 4401,
  tokenExpired: 4501,
  silent: 4508,
  tooFast: 4529,
  goingAway: 1001,
  overloaded: 1013,
} as const;

/** `left`: the client closed its socket. `refused`: it was closed from here. */
export type LineEnd = "left" | "refused";

export type YLineOptions = { readonly yWaitingBytesMax: number };

export class YLine {
  readonly #socket: YSocket;
  readonly #options: YLineOptions;
  readonly #closes: YWebsocketMetrics["closes"];
  readonly #onEnd: (end: LineEnd) => void;
  #isOpen = true;

  /** `onEnd`: is told once, before the socket is closed. */
  constructor(socket: YSocket, options: YLineOptions, closes: YWebsocketMetrics["closes"], onEnd: (end: LineEnd) => void) {
    this.#socket = socket;
    this.#options = options;
    this.#closes = closes;
    this.#onEnd = onEnd;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** One message may be as long as the document, so what counts is what the client had not taken before it. */
  tell(bytes: Uint8Array): void {
    if (!this.#isOpen) return;
    if (this.#socket.waitingBytes > this.#options.yWaitingBytesMax) {
      return this.refuse(Y_CLOSE.overloaded, "it does not take what it is sent");
    }
    this.#socket.send(bytes);
  }

  /** What the client wrote before that, and was taken, is saved all the same. */
  refuse(code: number, reason: string): void {
    if (!this.#isOpen) return;
    if (code === Y_CLOSE.refused) this.#socket.send(encodeDenied(reason));
    this.#closes.inc({ code: String(code) });
    this.#end("refused");
    this.#socket.close(code, reason);
  }

  receiveClosed(): void {
    if (this.#isOpen) this.#end("left");
  }

  #end(end: LineEnd): void {
    this.#isOpen = false;
    this.#onEnd(end);
  }
}
