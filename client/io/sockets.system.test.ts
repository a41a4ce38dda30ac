/** The sockets and the snapshot download on a real server: the contract of `ports.ts`, for every implementation. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";

import type { OpenSocket, Socket } from "../ports.ts";
import { openSocket as browserSocket } from "./browser-socket.ts";
import { fetchSnapshot } from "./fetch-snapshot.ts";
import { openSocket as nodeSocket } from "./node-socket.ts";

vi.stubGlobal("WebSocket", WebSocket); // Browsers have a WebSocket, and Node since version 22.

const NEVER = new AbortController().signal;

let http: Server;
let sockets: WebSocketServer;
let url: string;
let answerWith: (request: IncomingMessage, response: ServerResponse) => void;

beforeEach(async () => {
  http = createServer((request, response) => answerWith(request, response));
  sockets = new WebSocketServer({ server: http });
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening));
  url = `127.0.0.1:${(http.address() as AddressInfo).port}`;
});

afterEach(async () => {
  for (const client of sockets.clients) client.terminate();
  sockets.close();
  http.closeAllConnections();
  await new Promise((closed) => http.close(closed));
});

/** Opens a socket. `next` returns its next event each time. */
function open(openSocket: OpenSocket, to: string): { socket: Socket; next: () => Promise<string> } {
  const events: string[] = [];
  let wake: (() => void) | undefined;
  const addEvent = (what: string): void => {
    events.push(what);
    wake?.();
  };
  const socket = openSocket(to, {
    opened: () => addEvent("opened"),
    received: (bytes) => addEvent(`received ${bytes}`),
    closed: (code) => addEvent(`closed ${code}`),
  });
  const next = async (): Promise<string> => {
    if (events.length === 0) await new Promise<void>((ready) => (wake = ready));
    return events.shift()!;
  };
  return { socket, next };
}

const accepted = (): Promise<WebSocket> => new Promise((connected) => sockets.once("connection", connected));

describe.each([
  ["in Node", nodeSocket],
  ["in browsers", browserSocket],
] as const)("%s", (_, openSocket) => {
  test("[SOC1] bytes travel both ways, in order", async () => {
    const server = accepted();
    const { socket, next } = open(openSocket, `ws://${url}/`);
    expect(await next()).toBe("opened");
    const peer = await server;
    const received: string[] = [];
    const both = new Promise<void>((done) => peer.on("message", (data) => received.push([...(data as Buffer)].join()) === 2 && done()));
    socket.send(new Uint8Array([1, 2, 3]).subarray(1));
    socket.send(new Uint8Array(4));
    await both;
    expect(received).toEqual(["2,3", "0,0,0,0"]);
    peer.send(new Uint8Array([7]));
    peer.send(new Uint8Array([8, 9]));
    expect([await next(), await next()]).toEqual(["received 7", "received 8,9"]);
  });

  test("[SOC2] the server's close code is reported, and frames sent afterwards are dropped without an error", async () => {
    const server = accepted();
    const { socket, next } = open(openSocket, `ws://${url}/`);
    await next();
    (await server).close(4101, "no");
    expect(await next()).toBe("closed 4101");
    socket.send(new Uint8Array(1));
  });

  test("[SOC3] a server that cannot be reached is reported as a broken connection", async () => {
    const { socket, next } = open(openSocket, "ws://127.0.0.1:9/");
    socket.send(new Uint8Array(1));
    expect(await next()).toBe("closed 1006");
  });

  test("[SOC4] a socket that was closed here reports nothing more", async () => {
    const server = accepted();
    const { socket, next } = open(openSocket, `ws://${url}/`);
    await next();
    const peer = await server;
    const closed = new Promise<void>((done) => peer.on("close", () => done()));
    socket.close();
    peer.send(new Uint8Array(1));
    await closed;
    expect(await Promise.race([next(), Promise.resolve("nothing")])).toBe("nothing");
  });

  test("[SOC5] a text message is not a frame and is passed on as zero bytes", async () => {
    const server = accepted();
    const { next } = open(openSocket, `ws://${url}/`);
    await next();
    (await server).send("text");
    expect(await next()).toBe("received ");
  });
});

test("[SOC6] in Node a socket that fails to open gives the reason", async () => {
  const why = (to: string): Promise<string | undefined> =>
    new Promise((resolve) => nodeSocket(to, { opened: () => {}, received: () => {}, closed: (_, text) => resolve(text) }));
  expect(await why("ws://127.0.0.1:9/")).toBe("connect ECONNREFUSED 127.0.0.1:9");
  answerWith = (_, response) => response.writeHead(404).end();
  sockets.close();
  http.removeAllListeners("upgrade");
  expect(await why(`ws://${url}/`)).toBe("HTTP 404 Not Found");
});

test.each([
  ["7", 7_000],
  ["Mon, 23 Nov 2026 04:20:00 GMT", 0], // A date, which a proxy may send. It is ignored, because clocks differ.
  ["", 0],
])("[SOC7] in Node the client reads retry-after %j of a server that rejects the socket", async (retryAfter, expected) => {
  sockets.close();
  http.removeAllListeners("upgrade");
  answerWith = (_, response) => response.writeHead(429, { "retry-after": retryAfter }).end("too many");
  const events = await new Promise((resolve) =>
    nodeSocket(`ws://${url}/`, { opened: () => {}, received: () => {}, closed: (...closed) => resolve(closed) }),
  );
  expect(events).toEqual([1006, "HTTP 429 Too Many Requests", expected]);
});

test("[SOC8] in browsers a server that answers HTTP and opens no WebSocket is distinguished from one that cannot be reached", async () => {
  vi.resetModules();
  const { openSocket } = await import("./browser-socket.ts"); // A page in which no socket has opened yet.
  const why = (to: string): Promise<string | undefined> =>
    new Promise((resolve) => openSocket(to, { opened: () => {}, received: () => {}, closed: (_, text) => resolve(text) }));
  expect(await why("ws://127.0.0.1:9/")).toBeUndefined();
  const asked: unknown[] = [];
  answerWith = ({ method, url: path }, response) => {
    asked.push([method, path]);
    response.writeHead(502).end();
  };
  const upgrade = http.listeners("upgrade")[0] as (...given: unknown[]) => void;
  http.removeAllListeners("upgrade");
  expect(await why(`ws://${url}/path?route=1`)).toMatch(/no WebSocket opens, but HTTP requests are answered/);
  expect(asked).toContainEqual(["HEAD", "/path?route=1"]);
  http.on("upgrade", upgrade);
  const server = accepted();
  const { next } = open(openSocket, `ws://${url}/`);
  expect(await next()).toBe("opened");
  (await server).terminate();
  expect(await next()).toBe("closed 1006");
  http.removeAllListeners("upgrade");
  expect(await why(`ws://${url}/`), "it opened before, so nothing blocks it").toBeUndefined();
});

test("[SOC9] in browsers a socket that was closed here reports nothing after a late answer", async () => {
  vi.resetModules();
  const { openSocket } = await import("./browser-socket.ts");
  http.removeAllListeners("upgrade");
  let answer = (): void => {};
  const asked = new Promise<void>((ready) => {
    answerWith = ({ method }, response) => {
      if (method !== "HEAD") return response.writeHead(502).end();
      answer = () => response.end();
      return ready();
    };
  });
  const events: string[] = [];
  const socket = openSocket(`ws://${url}/`, { opened: () => {}, received: () => {}, closed: () => events.push("closed") });
  await asked;
  socket.close();
  answer();
  await sleep(100);
  expect(events).toEqual([]);
});

test("[SNA1] a snapshot request sends the token, and the snapshot arrives with its position", async () => {
  let authorization: string | undefined;
  answerWith = (request, response) => {
    authorization = request.headers.authorization;
    response
      .writeHead(200, { "x-coroom-seq": "70", "x-coroom-epoch": "3", "x-coroom-last-edit": "annannannannann1.12" })
      .end(new Uint8Array([1, 2]));
  };
  expect(await fetchSnapshot(`http://${url}/v1/rooms/notes/snapshot`, "t.o.k", NEVER)).toEqual({
    kind: "snapshot",
    position: { epoch: 3, seq: 70 },
    last: { client: "annannannannann1", counter: 12 },
    payload: new Uint8Array([1, 2]),
  });
  expect(authorization).toBe("Bearer t.o.k");
});

test.each([
  [404, {}, { kind: "none" }],
  [410, {}, { kind: "deleted" }],
  [503, { "retry-after": "2" }, { kind: "unavailable", retryAfterMs: 2_000, why: "HTTP 503" }],
  [401, {}, { kind: "unavailable", retryAfterMs: 0, why: "HTTP 401" }],
] as const)("[SNA2] HTTP %i is an answer", async (status, headers, answer) => {
  answerWith = (_, response) => response.writeHead(status, headers).end();
  expect(await fetchSnapshot(`http://${url}/`, "t", NEVER)).toEqual(answer);
});

test("[SNA3] a snapshot without a position is rejected with the likely cause", async () => {
  answerWith = (_, response) => response.writeHead(200, { "x-coroom-seq": "-1" }).end("x");
  expect(await fetchSnapshot(`http://${url}/`, "t", NEVER)).toMatchObject({
    kind: "unavailable",
    why: expect.stringContaining("x-coroom-epoch"),
  });
});

test("[SNA4] the request is rejected when the server cannot be reached", async () => {
  await expect(fetchSnapshot("http://127.0.0.1:9/", "t", NEVER)).rejects.toThrow();
});

test("[SNA5] a long download may take any time while bytes arrive", async () => {
  answerWith = (_, response) => {
    response.writeHead(200, { "x-coroom-seq": "70", "x-coroom-epoch": "3" });
    void (async () => {
      for (let part = 1; part <= 12; part++) await sleep(250, response.write(new Uint8Array([part])));
      response.end();
    })();
  };
  expect(await fetchSnapshot(`http://${url}/`, "t", NEVER, 2_000)).toMatchObject({
    kind: "snapshot",
    payload: new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
  });
});

test.each<[string, (response: ServerResponse) => void]>([
  ["without a head", () => {}],
  ["in the middle", (response) => void response.writeHead(200, { "x-coroom-seq": "70", "x-coroom-epoch": "3" }).write("x")],
])("[SNA6] the request is rejected when the server becomes silent %s", async (_, begin) => {
  answerWith = (_request, response) => begin(response);
  await expect(fetchSnapshot(`http://${url}/`, "t", NEVER, 200)).rejects.toThrow("no data arrived for 200 ms");
});

test("[SNA7] a download that is no longer needed is aborted, even before it has begun", async () => {
  const closed = new Promise<void>((resolve) => {
    answerWith = (_, response) => {
      const dripping = setInterval(() => response.write("x"), 50);
      response.writeHead(200, { "x-coroom-seq": "70", "x-coroom-epoch": "3" }).on("close", () => resolve(clearInterval(dripping)));
    };
  });
  const leaving = new AbortController();
  const fetching = fetchSnapshot(`http://${url}/`, "t", leaving.signal);
  await once(http, "request");
  leaving.abort(new Error("left"));
  await expect(fetching).rejects.toThrow("left");
  await closed;
  await expect(fetchSnapshot(`http://${url}/`, "t", leaving.signal)).rejects.toThrow("left");
});
