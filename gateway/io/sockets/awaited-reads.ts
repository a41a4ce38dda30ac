/**
 * Callers that wait until a client has read its data. The callers of one connection continue one at a time: a client
 * that catches up in 100 rooms has about one answer queued, and not 100.
 */

import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import type { ConnectionId } from "../../ports.ts";

export class AwaitedReads {
  readonly #open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount">>;
  readonly #lastOfTurn: (run: () => void) => void;
  /** Oldest first. */
  readonly #waiting = new Map<ConnectionId, (() => void)[]>();

  constructor(open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount">>, lastOfTurn: (run: () => void) => void) {
    this.#open = open;
    this.#lastOfTurn = lastOfTurn;
  }

  /** Nearly always the socket passes all data to the kernel at the end of the turn, and the caller continues then. */
  add(connection: ConnectionId, receive: () => void): void {
    if (!this.#open.has(connection)) return;
    const waiting = this.#waiting.get(connection);
    if (waiting === undefined) this.#waiting.set(connection, [receive]);
    else waiting.push(receive);
    this.#lastOfTurn(() => this.receiveDrained(connection));
  }

  /** Call when the client may have read all data. */
  receiveDrained(connection: ConnectionId): void {
    const waiting = this.#waiting.get(connection);
    if (waiting === undefined || this.#open.get(connection)?.getBufferedAmount() !== 0) return;
    const next = waiting.shift();
    if (waiting.length === 0) this.#waiting.delete(connection);
    next?.();
  }

  has(connection: ConnectionId): boolean {
    return this.#waiting.has(connection);
  }

  forget(connection: ConnectionId): void {
    this.#waiting.delete(connection);
  }

  /** Call several times a second: a caller that sends nothing causes no event at which the next one could continue. */
  look(): void {
    for (const connection of this.#waiting.keys()) this.receiveDrained(connection);
  }
}
