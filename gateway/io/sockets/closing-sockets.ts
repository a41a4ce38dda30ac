/**
 * Sockets that are closing and still have unread data. uWebSockets.js queues the close frame behind that data. After
 * that, the amount of unread data is unknown and the socket cannot be cut: it stays for 16 s if the client reads
 * nothing, and far longer if it reads slowly. So the client first gets a short time to read. If it reads everything,
 * the close frame is sent. Otherwise the connection is cut and the unread data is dropped.
 *
 * Time is counted in checks, not by a clock: a gateway that was paused must not cut clients that read.
 */

import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import { CLOSE, CLOSE_MEANINGS, type CloseName } from "../../../shared/wire/close-codes.ts";
import type { ConnectionId } from "../../ports.ts";

type ClosingSocket = Pick<WebSocket<unknown>, "close" | "end" | "getBufferedAmount" | "getTopics" | "unsubscribe">;
export type ClosingOptions = { readonly closingMsMax: number };

type Closing = { readonly socket: ClosingSocket; readonly close: CloseName; looksLeft: number };

export class ClosingSockets {
  readonly #sockets = new Map<ConnectionId, Closing>();
  readonly #looksMax: number;

  /** `lookMs` is the interval between two checks. */
  constructor({ closingMsMax }: ClosingOptions, lookMs: number) {
    this.#looksMax = Math.ceil(closingMsMax / lookMs);
  }

  get count(): number {
    return this.#sockets.size;
  }

  /** Unread bytes of all closing sockets. */
  get bytes(): number {
    let bytes = 0;
    for (const { socket } of this.#sockets.values()) bytes += socket.getBufferedAmount();
    return bytes;
  }

  /** After this call nothing may be sent to the connection. */
  add(connection: ConnectionId, socket: ClosingSocket, close: CloseName): void {
    for (const topic of socket.getTopics()) socket.unsubscribe(topic);
    this.#sockets.set(connection, { socket, close, looksLeft: this.#looksMax });
  }

  /** Call when the client has read some of the data. */
  receiveDrained(connection: ConnectionId): void {
    const closing = this.#sockets.get(connection);
    if (closing === undefined || closing.socket.getBufferedAmount() > 0) return;
    const [{ code }, meaning] = [CLOSE[closing.close], CLOSE_MEANINGS[closing.close]];
    closing.socket.end(code, meaning);
  }

  /** Returns false when the connection was not closing. */
  receiveClosed(connection: ConnectionId): boolean {
    return this.#sockets.delete(connection);
  }

  /** Cuts the connections whose time is over. */
  look(): void {
    for (const closing of this.#sockets.values()) if (--closing.looksLeft < 0) closing.socket.close();
  }
}
