/**
 * A proxy between a process and nats-server. It can hold messages that are published to the log, and forwards all
 * others, so that the log is slow or silent in a healthy system. It parses the NATS protocol only to find the bounds of
 * published messages.
 */

import { createServer, type AddressInfo, type Server, type Socket, connect } from "node:net";

const CRLF = Buffer.from("\r\n");

export class SlowLogProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #holding = false;
  #held: (() => void)[] = [];

  private constructor(natsUrl: string) {
    const target = new URL(natsUrl);
    this.#server = createServer((client) => this.#join(client, connect(Number(target.port), target.hostname)));
  }

  static async start(natsUrl: string): Promise<{ proxy: SlowLogProxy; url: string }> {
    const proxy = new SlowLogProxy(natsUrl);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return { proxy, url: `nats://127.0.0.1:${(proxy.#server.address() as AddressInfo).port}` };
  }

  /** Holds appends to the log from now on. */
  hold(): void {
    this.#holding = true;
  }

  /** Forwards the held messages in order, and all later ones. */
  release(): void {
    this.#holding = false;
    for (const pass of this.#held.splice(0)) pass();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, server: Socket): void {
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on("close", () => to.destroy());
      from.on("error", () => to.destroy());
    }
    server.pipe(client);
    let rest: Buffer = Buffer.alloc(0);
    client.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (let message = firstMessage(rest); message !== undefined; message = firstMessage(rest)) {
        const bytes = Buffer.from(rest.subarray(0, message.length));
        rest = rest.subarray(message.length);
        const pass = () => void server.write(bytes);
        if (this.#holding && message.toLog) this.#held.push(pass);
        else pass();
      }
    });
  }
}

/** The length of the first complete protocol message, payload included, or undefined if it is incomplete. */
function firstMessage(bytes: Buffer): { length: number; toLog: boolean } | undefined {
  const end = bytes.indexOf(CRLF);
  if (end < 0) return undefined;
  const header = bytes.subarray(0, end).toString();
  const [verb, subject = "", ...more] = header.split(" ");
  if (verb !== "PUB" && verb !== "HPUB") return { length: end + CRLF.length, toLog: false };
  const length = end + CRLF.length + Number(more.at(-1)) + CRLF.length;
  return bytes.length < length ? undefined : { length, toLog: /^[^.]+\.log\./.test(subject) };
}
