/**
 * Gathers the frames to each client within a turn of the event loop, and writes them together at its end, or when they
 * have many bytes. A joining client is sent three or more frames, and one write costs more than all of them.
 */

import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import type { ConnectionId } from "../../ports.ts";

/** A client can request far more in one turn than it may be sent, and `outboundBytesMax` counts only what is written. */
export const GATHERED_BYTES_MAX = 1024 ** 2;

export class GatheredSends {
  readonly #open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "send" | "cork">>;
  readonly #lastOfTurn: (run: () => void) => void;
  /**
   * Nearly always a single frame. An array per client would outlive a garbage collection when thousands of clients are
   * answered in one turn.
   */
  readonly #waiting = new Map<ConnectionId, Uint8Array | Uint8Array[]>();
  /** Of all clients. */
  #bytes = 0;

  constructor(open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "send" | "cork">>, lastOfTurn: (run: () => void) => void) {
    this.#open = open;
    this.#lastOfTurn = lastOfTurn;
  }

  /** `frame` is read when it is written, and must not change before. */
  send(to: ConnectionId, frame: Uint8Array): void {
    const waiting = this.#waiting.get(to);
    if (this.#waiting.size === 0) this.#lastOfTurn(() => this.flush());
    if (Array.isArray(waiting)) waiting.push(frame);
    else this.#waiting.set(to, waiting === undefined ? frame : [waiting, frame]);
    this.#bytes += frame.byteLength;
    if (this.#bytes > GATHERED_BYTES_MAX) this.flush();
  }

  /**
   * Writes before the end of the turn, so that a later publication does not overtake the frames. A send may close a
   * socket, and that may flush again.
   */
  flush(): void {
    this.#bytes = 0;
    for (const to of this.#waiting.keys()) {
      const frames = this.#waiting.get(to)!;
      this.#waiting.delete(to);
      const socket = this.#open.get(to); // Undefined when the connection has closed meanwhile.
      if (Array.isArray(frames)) socket?.cork(() => frames.forEach((frame) => socket.send(frame, true)));
      else socket?.send(frames, true);
    }
  }
}
