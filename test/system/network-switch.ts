/** The network of a browser context. It affects only traffic of the page; the page's files stay available. */

import type { BrowserContext, WebSocketRoute } from "playwright-core";

export class NetworkSwitch {
  readonly #context: BrowserContext;
  readonly #sockets = new Set<WebSocketRoute>();
  #isOn = true;

  private constructor(context: BrowserContext) {
    this.#context = context;
  }

  /** Call before the context opens its first page. */
  static async of(context: BrowserContext): Promise<NetworkSwitch> {
    const network = new NetworkSwitch(context);
    await context.routeWebSocket(/./, (socket) => network.#route(socket));
    await context.route(/\/(?:demo|v1)\//, (route) => (network.#isOn ? route.continue() : route.abort("internetdisconnected")));
    return network;
  }

  async off(): Promise<void> {
    this.#isOn = false;
    await Promise.all([...this.#sockets].map((socket) => socket.close()));
    this.#sockets.clear();
  }

  /** Sends pages the event that a browser sends when its network returns. */
  async on(): Promise<void> {
    this.#isOn = true;
    await Promise.all(this.#context.pages().map((page) => page.evaluate(() => dispatchEvent(new Event("online")))));
  }

  #route(socket: WebSocketRoute): void {
    if (!this.#isOn) {
      void socket.close();
      return;
    }
    this.#sockets.add(socket);
    socket.connectToServer();
  }
}
