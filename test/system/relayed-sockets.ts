/** The connections of a TCP relay. Each has two sockets, which close together. */

import type { Socket } from "node:net";

export class RelayedSockets {
  readonly #sockets = new Set<Socket>();

  join(near: Socket, far: Socket): void {
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy()); // A reset on one side ends the other side.
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }

  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }
}
