/**
 * What is sent to each client within a turn of the event loop goes out at its end, in one write: whoever comes in is
 * sent three frames and more, and the write costs more than they do.
 */

import type { WebSocket } from "uws-node20";

import type { ConnectionId } from "../ports.ts";

export class GatheredSends {
  readonly #open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "send" | "cork">>;
  readonly #lastOfTurn: (run: () => void) => void;
  /** Nearly always one frame: a list for each would outlive a collection when thousands are answered in a turn. */
  readonly #waiting = new Map<ConnectionId, Uint8Array | Uint8Array[]>();

  constructor(open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "send" | "cork">>, lastOfTurn: (run: () => void) => void) {
    this.#open = open;
    this.#lastOfTurn = lastOfTurn;
  }

  /** `frame` is read when it goes out, and must not change. */
  send(to: ConnectionId, frame: Uint8Array): void {
    const waiting = this.#waiting.get(to);
    if (Array.isArray(waiting)) return void waiting.push(frame);
    if (this.#waiting.size === 0) this.#lastOfTurn(() => this.flush());
    this.#waiting.set(to, waiting === undefined ? frame : [waiting, frame]);
  }

  /** Sooner than the turn ends: before what may not overtake them. A send may close a socket, and that may flush again. */
  flush(): void {
    for (const to of this.#waiting.keys()) {
      const frames = this.#waiting.get(to)!;
      this.#waiting.delete(to);
      const socket = this.#open.get(to); // None: gone meanwhile.
      if (Array.isArray(frames)) socket?.cork(() => frames.forEach((frame) => socket.send(frame, true)));
      else socket?.send(frames, true);
    }
  }
}
