/** A load balancer for tests: forwards TCP to the first gateway that is ready. */

import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

import type { RunningGateway } from "./cluster.ts";
import { RelayedSockets } from "./relayed-sockets.ts";

export class Balancer {
  readonly #gateways: readonly RunningGateway[];
  readonly #server: Server;
  readonly #sockets = new RelayedSockets();

  private constructor(gateways: readonly RunningGateway[]) {
    this.#gateways = gateways;
    this.#server = createServer((near) => void this.#take(near));
  }

  static async before(gateways: readonly RunningGateway[]): Promise<Balancer> {
    const balancer = new Balancer(gateways);
    await new Promise<void>((resolve) => balancer.#server.listen(0, "127.0.0.1", resolve));
    return balancer;
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#sockets.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(near: Socket): Promise<void> {
    near.on("error", () => {}); // "close" follows.
    for (const { httpUrl } of this.#gateways) {
      if (await isReady(httpUrl)) return this.#sockets.join(near, connect(Number(new URL(httpUrl).port), "127.0.0.1"));
    }
    near.resetAndDestroy();
  }
}

/** A gateway that has ended refuses the connection, and is not ready either. */
function isReady(httpUrl: string): Promise<boolean> {
  return fetch(`${httpUrl}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}
