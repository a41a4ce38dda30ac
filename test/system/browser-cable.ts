/**
 * The network between a page and the system: a TCP relay that a test can unplug. Unplugged, it cuts and refuses
 * connections.
 */

import { connect, createServer, type AddressInfo, type Server } from "node:net";

import { RelayedSockets } from "./relayed-sockets.ts";

export class Cable {
  readonly #server: Server;
  readonly #sockets = new RelayedSockets();
  #plugged = true;

  private constructor(target: URL) {
    this.#server = createServer((near) => {
      if (this.#plugged) this.#sockets.join(near, connect(Number(target.port), target.hostname));
      else near.resetAndDestroy();
    });
  }

  static async to(target: string): Promise<{ cable: Cable; url: string }> {
    const cable = new Cable(new URL(target));
    await new Promise<void>((resolve) => cable.#server.listen(0, "127.0.0.1", resolve));
    return { cable, url: `http://127.0.0.1:${(cable.#server.address() as AddressInfo).port}` };
  }

  pull(): void {
    this.#plugged = false;
    this.#sockets.reset();
  }

  plug(): void {
    this.#plugged = true;
  }

  async stop(): Promise<void> {
    this.pull();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
