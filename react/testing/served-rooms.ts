/** The client's model server behind a real WebSocket on this machine, and React trees that use it. */

import type { AddressInfo } from "node:net";

import type { ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { WebSocketServer } from "ws";

import { systemClock } from "../../client/io/system.ts";
import type { ClientFakeClock } from "../../client/testing/fake-clock.ts";
import { ModelServer } from "../../client/testing/model-server.ts";

/** `stop` ends all connections. */
export type ServedRooms = { readonly model: ModelServer; readonly url: string; readonly stop: () => Promise<void> };

export async function serveRooms(): Promise<ServedRooms> {
  const model = new ModelServer(systemClock as unknown as ClientFakeClock); // The model uses the methods that each clock has.
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  server.on("connection", (socket) => {
    const toModel = model.openSocket("", {
      opened: () => {},
      received: (bytes) => socket.send(bytes),
      closed: (code) => socket.close(code === 1006 ? 1011 : code),
    });
    socket.on("message", (data: Buffer) => toModel.send(new Uint8Array(data)));
    socket.on("close", () => toModel.close());
  });
  await new Promise((ready) => server.once("listening", ready));
  return {
    model,
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      for (const socket of server.clients) socket.terminate();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** A React tree in the document. */
export class MountedTree {
  readonly element = document.createElement("div");
  readonly #root = createRoot(this.element);

  constructor(node: ReactNode) {
    this.show(node);
  }

  get text(): string {
    return this.element.textContent ?? "";
  }

  show(node: ReactNode): void {
    this.#root.render(node);
  }

  unmount(): void {
    this.#root.unmount();
  }
}
