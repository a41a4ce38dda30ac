/** A load balancer as a deployment has one, for tests: TCP to the first gateway whose readiness says yes. */

import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

import type { Gateway } from "./cluster.ts";

export class Balancer {
  readonly #gateways: readonly Gateway[];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(gateways: readonly Gateway[]) {
    this.#gateways = gateways;
    this.#server = createServer((near) => void this.#take(near));
  }

  static async before(gateways: readonly Gateway[]): Promise<Balancer> {
    const balancer = new Balancer(gateways);
    await new Promise<void>((resolve) => balancer.#server.listen(0, "127.0.0.1", resolve));
    return balancer;
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(near: Socket): Promise<void> {
    near.on("error", () => {}); // "close" follows.
    for (const { httpUrl } of this.#gateways) {
      if (await isReady(httpUrl)) return this.#join(near, connect(Number(new URL(httpUrl).port), "127.0.0.1"));
    }
    near.resetAndDestroy();
  }

  #join(near: Socket, far: Socket): void {
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy()); // A reset on one side is the end of the other.
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
  }
}

/** A gateway that is gone refuses the connection: not ready either. */
function isReady(httpUrl: string): Promise<boolean> {
  return fetch(`${httpUrl}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}
