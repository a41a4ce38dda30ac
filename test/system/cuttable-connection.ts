/**
 * A connection to nats-server that a test can cut like a network: no bytes pass, in one or both directions, and neither
 * end is closed. Bytes that were sent during the cut arrive after the repair.
 */

import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Direction of the bytes that are cut: to the server, from the server, or both. */
export type Way = "to" | "from" | "both";

export class CuttableConnection {
  readonly #server: Server;
  /** Each socket with the direction of the bytes that are read from it. */
  readonly #sockets = new Map<Socket, Exclude<Way, "both">>();
  #cut: Way | undefined;

  private constructor(natsUrl: string) {
    const target = new URL(natsUrl);
    this.#server = createServer((client) => this.#join(client, connect(Number(target.port), target.hostname)));
  }

  static async start(natsUrl: string): Promise<CuttableConnection> {
    const connection = new CuttableConnection(natsUrl);
    await new Promise<void>((resolve) => connection.#server.listen(0, "127.0.0.1", resolve));
    return connection;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  cut(way: Way = "both"): void {
    this.#cut = way;
    for (const socket of this.#sockets.keys()) this.#holdOrLet(socket);
  }

  repair(): void {
    this.#cut = undefined;
    for (const socket of this.#sockets.keys()) this.#holdOrLet(socket);
  }

  /** Closes what is connected. New connections are accepted. */
  breakOff(): void {
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  async stop(): Promise<void> {
    this.breakOff();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, server: Socket): void {
    for (const [from, to, way] of [
      [client, server, "to"],
      [server, client, "from"],
    ] as const) {
      from.setNoDelay(true);
      this.#sockets.set(from, way);
      from.on("data", (bytes) => to.write(bytes));
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.on("error", () => to.destroy());
      this.#holdOrLet(from);
    }
  }

  #holdOrLet(socket: Socket): void {
    if (this.#cut === "both" || this.#cut === this.#sockets.get(socket)) socket.pause();
    else socket.resume();
  }
}
