/** Clients that read slowly over HTTP and WebSockets, on real sockets. The tests mostly wait, so they run concurrently. */

import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { expect, test } from "vitest";
import { WebSocket } from "ws";

import { turnEnd } from "../shared/io/event-loop.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { until } from "../test/contract/real-nats.ts";
import type { ClosingSockets } from "./io/sockets/closing-sockets.ts";
import type { SlowReaders } from "./io/sockets/slow-readers.ts";
import type { HttpAnswer } from "./http/answers.ts";
import type { RouteRequest } from "./http/requests.ts";
import { serveRoutes } from "./io/http/serve-routes.ts";
import { loadUws } from "./io/sockets/load-uws.ts";
import { listen, uwsSockets } from "./io/sockets/uws-server.ts";
import { SOCKET_PATH } from "./http/route-table.ts";
import type { ConnectionId } from "./ports.ts";

const LONG = new Uint8Array(30_000_000).fill(7);
/** Longer than the time for which uWebSockets.js keeps a stalled answer. */
const PAUSE_MS = 16_000;

async function* inParts(): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < LONG.byteLength; start += 1_000_000) yield LONG.subarray(start, start + 1_000_000);
}

test.concurrent.each<[string, () => HttpAnswer]>([
  ["held in memory", () => ({ status: 200, body: LONG })],
  ["that comes in parts", () => ({ status: 200, body: inParts(), bodyBytes: LONG.byteLength })],
])("[SLOW1] a long answer %s reaches a reader that pauses for a while", { timeout: 60_000 }, async (_, answer) => {
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

test.concurrent("[SLOW2] an answer is abandoned when its reader reads nothing for too long", async () => {
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
    onBodyTooLarge: () => {},
    log: SILENT_LOG,
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const why = await new Promise<Error>((resolve) => {
      get({ host: "127.0.0.1", port, path: "/long", agent: false }, (response) => {
        response.on("error", resolve);
        response.pause();
        void until(() => stalled > 0, "the answer to be abandoned").then(() => response.resume(), resolve);
      }).on("error", resolve);
    });
    expect([why.message, stalled]).toEqual(["aborted", 1]);
  } finally {
    app.close();
  }
});

test.concurrent("[SLOW3] an answer is released when its client disconnects before it begins", async () => {
  const uws = loadUws();
  const app = uws.App();
  let [isAsked, isReleased] = [false, false];
  async function* held(): AsyncGenerator<Uint8Array> {
    try {
      yield* inParts();
    } finally {
      isReleased = true;
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
    onBodyTooLarge: () => {},
    log: SILENT_LOG,
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const asking = get({ host: "127.0.0.1", port, path: "/long", agent: false }).on("error", () => {});
    await until(() => isAsked, "the question");
    asking.destroy();
    await until(() => isReleased, "the answer to be released");
  } finally {
    app.close();
  }
});

const NO_LIMIT = 1e9;

/** A gateway's sockets without a gateway. */
function bareSockets(
  limits: { readonly closingMsMax?: number; readonly outboundBytesMax?: number },
  onLooked: (behind: SlowReaders, closing: ClosingSockets) => void = () => {},
  onEnded: (cause: string) => void = () => {},
) {
  const uws = loadUws();
  const app = uws.App();
  const { lastOfTurn } = turnEnd();
  const upgrade = { allowedOrigins: [], clientAddressHeader: "", connectionsMax: 100, retryAfterMs: 5_000 };
  const outbound = { outboundBytesMax: NO_LIMIT, slowBytesMax: NO_LIMIT, slowMsMax: NO_LIMIT, behindBytesMax: NO_LIMIT };
  const options = { ...upgrade, ...outbound, messageBytesMax: 1_000, silenceMsMax: 75_000, closingMsMax: 1_000, ...limits };
  const admission = { unready: () => undefined, mayConnect: () => true, onTurnedAway: () => {} };
  return { uws, app, web: uwsSockets(app, options, admission, lastOfTurn, { onLooked, onEnded }) };
}

type Stalled = { readonly reader: WebSocket; readonly closed: Promise<number> };

/**
 * Serves this number of readers that read nothing. Each is sent a long frame and then closed as too slow. `closing`
 * returns the bytes that wait for them.
 */
async function withStalled(
  readers: number,
  closingMsMax: number,
  check: (stalled: readonly Stalled[], closing: () => Pick<ClosingSockets, "count" | "bytes">) => Promise<void>,
): Promise<void> {
  let closing = { count: 0, bytes: 0 };
  const { uws, app, web } = bareSockets({ closingMsMax }, (_, { count, bytes }) => (closing = { count, bytes }));
  const [inside, gone] = [new Set<ConnectionId>(), new Set<ConnectionId>()];
  web.start({
    receiveConnection: (connection) => void inside.add(connection),
    receiveFrame: () => {},
    receiveReadProgress: () => {},
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
    expect(gone).toEqual(inside); // The connections are reported as gone although they have unread data.
    await until(() => closing.count === readers, "all of them to be closing");
    await check(stalled, () => closing);
  } finally {
    await web.stop();
  }
}

test.concurrent("[SLOW4] the unread data of closed readers that read nothing is counted, and released within its time", () =>
  withStalled(10, 6_000, async (stalled, closing) => {
    expect(closing().bytes).toBeGreaterThan(stalled.length * 10_000_000);
    await until(() => closing().count === 0, "the sockets to be released");
    for (const { reader } of stalled) reader.resume();
    expect(new Set(await Promise.all(stalled.map(({ closed }) => closed)))).toEqual(new Set([1006])); // The unread data was discarded, and the close frame with it.
    expect(closing().bytes).toBe(0);
  }),
);

test.concurrent("[SLOW5] a closed reader that reads again in time receives all data and the close code", () =>
  withStalled(1, 60_000, async ([stalled], closing) => {
    let bytes = 0;
    stalled!.reader.on("message", (frame: Buffer) => (bytes += frame.byteLength));
    stalled!.reader.resume();
    expect([await stalled!.closed, bytes]).toEqual([4002, LONG.byteLength]);
    await until(() => closing().count === 0, "the socket to be released");
  }),
);

test("[SLOW7] a client that requests more than it may be sent is cut before its further requests are answered", async () => {
  const [requests, answer] = [500, new Uint8Array(1_000_000)];
  const { uws, app, web } = bareSockets({ outboundBytesMax: 2_000_000 });
  let [answered, isGone] = [0, false];
  web.start({
    receiveConnection: () => {},
    receiveFrame: (connection) => {
      answered += 1;
      web.sockets.send(connection, answer);
    },
    receiveReadProgress: () => {},
    receiveDisconnection: () => (isGone = true),
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const client = new WebSocket(`ws://127.0.0.1:${port}${SOCKET_PATH}`, { perMessageDeflate: false });
    client.on("error", () => {});
    await new Promise((resolve) => client.once("open", resolve));
    client.pause();
    for (let request = 0; request < requests; request++) client.send(Uint8Array.of(1)); // They arrive together, because the server runs in this process.
    await until(() => isGone, "the connection to be cut");
    expect(answered).toBeLessThan(requests / 2); // The kernel takes some megabytes.
    client.terminate();
  } finally {
    await web.stop();
  }
});

test.each([
  ["that sends a message", true],
  ["that sends nothing", false],
])("[SLOW8] the cut of a client above its limit %s is reported, and counts as an end by the gateway", async (_, isSending) => {
  const ends: string[] = [];
  const { uws, app, web } = bareSockets({ outboundBytesMax: 20_000_000 }, undefined, (cause) => void ends.push(cause));
  const sendTimes = (connection: ConnectionId, times: number): void => {
    for (let time = 0; time < times; time++) web.sockets.send(connection, LONG);
  };
  web.start({
    receiveConnection: (connection) => sendTimes(connection, isSending ? 1 : 3),
    receiveFrame: () => {},
    receiveReadProgress: (_, progress) => void ends.push(progress),
    receiveDisconnection: () => void ends.push("gone"),
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  try {
    const client = new WebSocket(`ws://127.0.0.1:${port}${SOCKET_PATH}`, { perMessageDeflate: false, maxPayload: 1e9 });
    client.on("error", () => {});
    await new Promise((resolve) => client.once("open", resolve));
    client.pause();
    if (isSending) client.send(Uint8Array.of(1));
    await until(() => ends.includes("gone"), "the connection to be cut");
    expect(ends).toEqual(["gateway", "cut", "gone"]);
    client.terminate();
  } finally {
    await web.stop();
  }
});
