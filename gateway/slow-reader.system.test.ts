/** Who takes slowly what is sent, over HTTP and WebSockets, on real sockets. They wait for the most part, so all at once. */

import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { expect, test } from "vitest";
import { WebSocket } from "ws";

import { turnEnd } from "../shared/io/event-loop.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { until } from "../test/contract/real-nats.ts";
import type { ClosingSockets } from "./io/sockets/closing-sockets.ts";
import type { HttpAnswer } from "./http/answers.ts";
import type { RouteRequest } from "./http/requests.ts";
import { serveRoutes } from "./io/http/serve-routes.ts";
import { loadUws } from "./io/sockets/load-uws.ts";
import { listen, uwsSockets } from "./io/sockets/uws-server.ts";
import { SOCKET_PATH } from "./http/route-table.ts";
import type { ConnectionId } from "./ports.ts";

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
    bodiesBytesMax: 1_000_000,
    onBodiesFull: () => {},
    log: SILENT_LOG,
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
    bodiesBytesMax: 1_000_000,
    onBodiesFull: () => {},
    log: SILENT_LOG,
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
  const answer = async ({ signal }: RouteRequest): Promise<HttpAnswer> => {
    isAsked = true;
    await until(() => signal.aborted, "the asker to go");
    return { status: 200, body: held(), bodyBytes: LONG.byteLength };
  };
  serveRoutes(app, [{ method: "get", path: "/long", answer }], {
    allowedOrigins: [],
    clientAddressHeader: "",
    answerStallMsMax: 60_000,
    onStalled: () => {},
    bodiesBytesMax: 1_000_000,
    onBodiesFull: () => {},
    log: SILENT_LOG,
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

type Stalled = { readonly reader: WebSocket; readonly closed: Promise<number> };

/** Serves so many readers, who read nothing while each is sent what `closing` gets to see, and then closed as too slow. */
async function withStalled(
  readers: number,
  closingMsMax: number,
  check: (stalled: readonly Stalled[], closing: () => Pick<ClosingSockets, "count" | "bytes">) => Promise<void>,
): Promise<void> {
  const uws = loadUws();
  const app = uws.App();
  const { lastOfTurn } = turnEnd();
  const [none, noLimit]: [readonly string[], number] = [[], 1e9];
  const upgrade = { allowedOrigins: none, clientAddressHeader: "", connectionsMax: 100, retryAfterMs: 5_000 };
  const outbound = { outboundBytesMax: noLimit, slowBytesMax: noLimit, slowMsMax: noLimit, behindBytesMax: noLimit };
  const options = { ...upgrade, ...outbound, frameBytesMax: 1_000, silenceMsMax: 75_000, closingMsMax };
  const door = { unready: () => undefined, mayConnect: () => true, onTurnedAway: () => {} };
  let closing = { count: 0, bytes: 0 };
  const web = uwsSockets(app, options, door, lastOfTurn, (_, { count, bytes }) => (closing = { count, bytes }));
  const [inside, gone] = [new Set<ConnectionId>(), new Set<ConnectionId>()];
  web.start({
    receiveConnection: (connection) => void inside.add(connection),
    receiveFrame: () => {},
    receivePace: () => {},
    receiveDisconnection: (connection) => void gone.add(connection),
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const stalled = Array.from({ length: readers }, (): Stalled => {
      const reader = new WebSocket(`ws://127.0.0.1:${port}${SOCKET_PATH}`, { perMessageDeflate: false });
      reader.on("error", () => {});
      reader.on("open", () => reader.pause());
      return { reader, closed: new Promise((resolve) => reader.on("close", resolve)) };
    });
    await until(() => inside.size === readers && stalled.every(({ reader }) => reader.isPaused), "the readers");
    for (const connection of inside) {
      web.sockets.send(connection, LONG);
      web.sockets.close(connection, "tooSlow");
    }
    expect(gone).toEqual(inside); // They are nobody's any more, while they have something to take.
    await until(() => closing.count === readers, "all of them to be closing");
    await check(stalled, () => closing);
  } finally {
    await web.stop();
  }
}

test.concurrent("[SLOW4] what readers have not taken who are closed and read nothing is counted, and let go within their time", () =>
  withStalled(10, 6_000, async (stalled, closing) => {
    expect(closing().bytes).toBeGreaterThan(stalled.length * 10_000_000);
    await until(() => closing().count === 0, "them to be let go");
    for (const { reader } of stalled) reader.resume();
    expect(new Set(await Promise.all(stalled.map(({ closed }) => closed)))).toEqual(new Set([1006])); // What waited, the close frame among it, is gone.
    expect(closing().bytes).toBe(0);
  }),
);

test.concurrent("[SLOW5] one that reads again in time takes all of it, and hears why it is closed", () =>
  withStalled(1, 60_000, async ([stalled], closing) => {
    let bytes = 0;
    stalled!.reader.on("message", (frame: Buffer) => (bytes += frame.byteLength));
    stalled!.reader.resume();
    expect([await stalled!.closed, bytes]).toEqual([4002, LONG.byteLength]);
    await until(() => closing().count === 0, "it to be let go");
  }),
);
