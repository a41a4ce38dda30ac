/** The client's model server behind a real WebSocket on this machine, React trees that use it, and the end of their timers. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import type { ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { afterAll, beforeAll } from "vitest";
import { WebSocketServer } from "ws";

import { systemClock } from "../../client/io/system.ts";
import type { ClientFakeClock } from "../../client/testing/fake-clock.ts";
import { ModelServer } from "../../client/testing/model-server.ts";

/**
 * `http` gives the answers to HTTP requests by path. `requests` are the paths of all requests but preflights. `stop` ends all
 * connections.
 */
export type ServedRooms = {
  readonly model: ModelServer;
  readonly url: string;
  readonly http: Map<string, { status: number; body: object; headers?: Readonly<Record<string, string>> }>;
  readonly requests: string[];
  readonly stop: () => Promise<void>;
};

export async function serveRooms(): Promise<ServedRooms> {
  const model = new ModelServer(systemClock as unknown as ClientFakeClock); // The model uses the methods that each clock has.
  const http: ServedRooms["http"] = new Map();
  const requests: string[] = [];
  const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "authorization, if-none-match" };
  const plain = createServer(({ url = "", method }, response) => {
    if (method !== "OPTIONS") requests.push(url);
    const { status, body, headers } = http.get(url) ?? { status: 404, body: { error: "not-found", message: `nothing at ${url}` } };
    response.writeHead(method === "OPTIONS" ? 204 : status, { ...cors, ...headers, "content-type": "application/json" });
    response.end(method === "OPTIONS" ? undefined : JSON.stringify(body));
  });
  const server = new WebSocketServer({ server: plain });
  server.on("connection", (socket) => {
    const toModel = model.openSocket("", {
      opened: () => {},
      received: (bytes) => socket.send(bytes),
      closed: (code) => socket.close(code === 1006 ? 1011 : code),
    });
    socket.on("message", (data: Buffer) => toModel.send(new Uint8Array(data)));
    socket.on("close", () => toModel.close());
  });
  await new Promise<void>((ready) => plain.listen(0, "127.0.0.1", ready));
  return {
    model,
    url: `ws://127.0.0.1:${(plain.address() as AddressInfo).port}`,
    http,
    requests,
    stop: async () => {
      for (const socket of server.clients) socket.terminate();
      server.close();
      plain.closeAllConnections();
      await new Promise((closed) => plain.close(closed));
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

/**
 * Call at the top of a test file. Ends the file's timers with it: rooms that no component uses are released after up to a
 * minute, and the window of the file is gone then.
 */
export function endTimersWithFile(): void {
  const { setTimeout } = globalThis;
  const timers: NodeJS.Timeout[] = [];
  beforeAll(() => {
    const remembered = (...given: Parameters<typeof setTimeout>): NodeJS.Timeout => {
      const timer = setTimeout(...given);
      timers.push(timer);
      return timer;
    };
    globalThis.setTimeout = Object.assign(remembered, setTimeout);
  });
  afterAll(() => {
    globalThis.setTimeout = setTimeout;
    timers.forEach(clearTimeout);
  });
}
