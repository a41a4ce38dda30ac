/**
 * Sockets that are closed and have not taken all that they were sent. uWebSockets.js puts the close frame behind that,
 * and from then on it neither tells how much waits nor lets anybody drop it: 16 s of a client that reads nothing, far
 * longer of one that reads a little now and then. So such a client is first given a moment here to take what waits;
 * the close frame goes out behind the last of it, or its line is cut, and with it goes what waited.
 *
 * Time is counted in looks and not by a clock: a gateway that stood still must not cut those who read.
 */

import type { WebSocket } from "uws-node20";

import { CLOSE, type CloseName } from "../../shared/wire/close-codes.ts";
import type { ConnectionId } from "../ports.ts";

export type ClosingSocket = Pick<WebSocket<unknown>, "close" | "end" | "getBufferedAmount" | "getTopics" | "unsubscribe">;
export type ClosingOptions = { readonly closingMsMax: number };

type Closing = { readonly socket: ClosingSocket; readonly close: CloseName; looksLeft: number };

export class ClosingSockets {
  readonly #sockets = new Map<ConnectionId, Closing>();
  readonly #looksMax: number;

  /** `lookMs`: from one look to the next. */
  constructor({ closingMsMax }: ClosingOptions, lookMs: number) {
    this.#looksMax = Math.ceil(closingMsMax / lookMs);
  }

  get count(): number {
    return this.#sockets.size;
  }

  /** What waits for all of them. */
  get bytes(): number {
    let bytes = 0;
    for (const { socket } of this.#sockets.values()) bytes += socket.getBufferedAmount();
    return bytes;
  }

  /** Nothing may be sent to it from here on. */
  add(connection: ConnectionId, socket: ClosingSocket, close: CloseName): void {
    for (const topic of socket.getTopics()) socket.unsubscribe(topic);
    this.#sockets.set(connection, { socket, close, looksLeft: this.#looksMax });
  }

  /** It has taken some of what waited. */
  receiveDrained(connection: ConnectionId): void {
    const closing = this.#sockets.get(connection);
    if (closing === undefined || closing.socket.getBufferedAmount() > 0) return;
    const { code, meaning } = CLOSE[closing.close];
    closing.socket.end(code, meaning);
  }

  /** False: it was not closing. */
  receiveClosed(connection: ConnectionId): boolean {
    return this.#sockets.delete(connection);
  }

  /** Cuts those whose time is up. */
  look(): void {
    for (const closing of this.#sockets.values()) if (--closing.looksLeft < 0) closing.socket.close();
  }
}
