/**
 * A proxy for one process's TCP connection to nats-server. A test can hold the connection, make it one-way, or cut it.
 * NATS and the process then see a paused process, a lost answer or a broken network.
 */

import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

type Pair = { readonly client: Socket; readonly server: Socket };

export class TcpProxy {
  readonly #listener: Server;
  readonly #pairs = new Set<Pair>();
  #answersLost = false;
  #held = false;

  private constructor(natsUrl: string) {
    const target = new URL(natsUrl);
    this.#listener = createServer((client) => this.#join({ client, server: connect(Number(target.port), target.hostname) }));
  }

  static async to(natsUrl: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(natsUrl);
    await new Promise<void>((resolve) => proxy.#listener.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  /** Holds all bytes in both directions; they arrive later. */
  hold(): void {
    this.#held = true;
    for (const { client, server } of this.#pairs) {
      client.pause();
      server.pause();
    }
  }

  release(): void {
    this.#held = false;
    for (const { client, server } of this.#pairs) {
      client.resume();
      server.resume();
    }
  }

  /** Forwards bytes of the process, but holds NATS's answers until `cut`. */
  loseAnswers(): void {
    this.#answersLost = true;
  }

  /** Breaks the connection; the process connects again. */
  cut(): void {
    this.#answersLost = false;
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server.destroy();
    }
    this.#pairs.clear();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#listener.close(resolve));
  }

  #join(pair: Pair): void {
    const { client, server } = pair;
    this.#pairs.add(pair);
    client.on("data", (bytes) => void server.write(bytes));
    server.on("data", (bytes) => void (this.#answersLost || client.write(bytes)));
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    }
    if (this.#held) this.hold();
  }
}
