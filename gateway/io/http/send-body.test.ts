/** A long body over a real socket. */

import { get } from "node:http";
import { expect, test, vi } from "vitest";

import type { HttpAnswer } from "../../http/answers.ts";
import { loadUws } from "../sockets/load-uws.ts";
import { listen } from "../sockets/uws-server.ts";
import { serveRoutes } from "./serve-routes.ts";

/** Several times the send buffer of the kernel. */
const LONG = new Uint8Array(30_000_000).fill(7);

async function* inParts(): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < LONG.byteLength; start += 1_000_000) yield LONG.subarray(start, start + 1_000_000);
}

test.each<[string, () => HttpAnswer]>([
  ["held in memory", () => ({ status: 200, body: LONG })],
  ["that comes in parts", () => ({ status: 200, body: inParts(), bodyBytes: LONG.byteLength })],
  ["that comes in parts and without its length", () => ({ status: 200, body: inParts() })],
])("[SLOW6] a long answer %s continues whenever its reader has read some of it, without a timer", async (_, answer) => {
  const offeredAgain = vi.spyOn(globalThis, "setInterval").mockReturnValue(undefined as never);
  const uws = loadUws();
  const app = uws.App();
  serveRoutes(app, [{ method: "get", path: "/long", answer }], {
    allowedOrigins: [],
    clientAddressHeader: "",
    answerStallMsMax: 60_000,
    onStalled: () => {},
    bodiesBytesMax: 1_000_000,
    onBodiesFull: () => {},
    onBodyTooLarge: () => {},
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const bytes = await new Promise<number>((resolve, reject) => {
      get({ host: "127.0.0.1", port, path: "/long", agent: false }, (response) => {
        let read = 0;
        response.on("data", (chunk: Buffer) => (read += chunk.byteLength));
        response.on("end", () => resolve(read)).on("error", reject);
      }).on("error", reject);
    });
    expect(bytes).toBe(LONG.byteLength);
  } finally {
    app.close();
    offeredAgain.mockRestore();
  }
});
