/** A long answer to somebody who takes it slowly, on real sockets. They wait for the most part, so all at once. */

import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { expect, test } from "vitest";

import { until } from "../test/contract/real-nats.ts";
import { type HttpAnswer, type HttpQuestion, serveRoutes } from "./io/http-routes.ts";
import { loadUws } from "./io/load-uws.ts";
import { listen } from "./io/uws-server.ts";

const LONG = new Uint8Array(30_000_000).fill(7);
/** Longer than uWebSockets.js lets an answer lie. */
const PAUSE_MS = 16_000;

async function* inParts(): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < LONG.byteLength; start += 1_000_000) yield LONG.subarray(start, start + 1_000_000);
}

test.concurrent.each<[string, () => HttpAnswer]>([
  ["held in memory", () => ({ status: 200, body: LONG })],
  ["that comes in parts", () => ({ status: 200, body: inParts(), bodyBytes: LONG.byteLength })],
])("[SLOW1] a long answer %s reaches whoever stops reading for a while", { timeout: 60_000 }, async (_, answer) => {
  const uws = loadUws();
  const app = uws.App();
  serveRoutes(app, [{ method: "get", path: "/long", answer }], {
    allowedOrigins: [],
    clientAddressHeader: "",
    answerStallMsMax: 60_000,
    onStalled: () => {},
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const bytes = await new Promise<number>((resolve, reject) => {
      get({ host: "127.0.0.1", port, path: "/long", agent: false }, (response) => {
        let read = 0;
        response.on("data", (chunk: Buffer) => (read += chunk.byteLength));
        response.on("end", () => resolve(read));
        response.on("error", reject);
        response.pause();
        void sleep(PAUSE_MS).then(() => response.resume());
      }).on("error", reject);
    });
    expect(bytes).toBe(LONG.byteLength);
  } finally {
    app.close();
  }
});

test.concurrent("[SLOW2] of one that takes nothing at all the answer is given up in the end", async () => {
  const uws = loadUws();
  const app = uws.App();
  let stalled = 0;
  serveRoutes(app, [{ method: "get", path: "/long", answer: () => ({ status: 200, body: LONG }) }], {
    allowedOrigins: [],
    clientAddressHeader: "",
    answerStallMsMax: 12_000,
    onStalled: () => void (stalled += 1),
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const why = await new Promise<Error>((resolve) => {
      get({ host: "127.0.0.1", port, path: "/long", agent: false }, (response) => {
        response.on("error", resolve);
        response.pause();
        void until(() => stalled > 0, "it to be given up").then(() => response.resume(), resolve);
      }).on("error", resolve);
    });
    expect([why.message, stalled]).toEqual(["aborted", 1]);
  } finally {
    app.close();
  }
});

test.concurrent("[SLOW3] of one that has gone before its answer began the answer is let go", async () => {
  const uws = loadUws();
  const app = uws.App();
  let [isAsked, isLetGo] = [false, false];
  async function* held(): AsyncGenerator<Uint8Array> {
    try {
      yield* inParts();
    } finally {
      isLetGo = true;
    }
  }
  const answer = async ({ signal }: HttpQuestion): Promise<HttpAnswer> => {
    isAsked = true;
    await until(() => signal.aborted, "the asker to go");
    return { status: 200, body: held(), bodyBytes: LONG.byteLength };
  };
  serveRoutes(app, [{ method: "get", path: "/long", answer }], {
    allowedOrigins: [],
    clientAddressHeader: "",
    answerStallMsMax: 60_000,
    onStalled: () => {},
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const asking = get({ host: "127.0.0.1", port, path: "/long", agent: false }).on("error", () => {});
    await until(() => isAsked, "the question");
    asking.destroy();
    await until(() => isLetGo, "the answer to be let go");
  } finally {
    app.close();
  }
});
