/**
 * A line to nats-server that can be cut as a network is: nothing passes in either direction, no end of it is told, and
 * what was under way arrives once it is mended.
 */

import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class CuttableLine {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut = false;

  private constructor(natsUrl: string) {
    const target = new URL(natsUrl);
    this.#server = createServer((client) => this.#join(client, connect(Number(target.port), target.hostname)));
  }

  static async start(natsUrl: string): Promise<CuttableLine> {
    const line = new CuttableLine(natsUrl);
    await new Promise<void>((resolve) => line.#server.listen(0, "127.0.0.1", resolve));
    return line;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  mend(): void {
    this.#cut = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, server: Socket): void {
    for (const [from, to] of [[client, server], [server, client]] as const) {
      from.setNoDelay(true);
      this.#sockets.add(from);
      from.on("data", (bytes) => to.write(bytes));
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.on("error", () => to.destroy());
      if (this.#cut) from.pause();
    }
  }
}
