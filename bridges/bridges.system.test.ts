/** The unmodified y-websocket client over a bridge and real processes. */

import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { WebsocketProvider } from "y-websocket";
import * as Y from "yjs";

import { readSettings } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { CoroomProvider } from "../client/index.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { type EdgeConfig, yWebsocketSettings } from "./config.ts";
import { type RunningYWebsocket, startBridges } from "./main.ts";

/** More for a measurement: COROOM_TEST_UNFINISHED=500. */
const UNFINISHED_CLIENTS = Number(process.env["COROOM_TEST_UNFINISHED"] ?? 100);

/** More for a measurement: COROOM_TEST_UNREAD=100. */
const UNREAD_CLIENTS = Number(process.env["COROOM_TEST_UNREAD"] ?? 30);

let cluster: SystemCluster;
let bridge: RunningYWebsocket;
let registry: Registry;
let ends: (() => void)[] = [];

async function startBridge(
  settings: Readonly<Record<string, string>> = {},
  port = 0,
  edge: Partial<EdgeConfig> = {},
  log = SILENT_LOG,
): Promise<void> {
  registry = new Registry();
  const flags = { yPort: String(port), yGatewayUrl: cluster.gateways[0]!.url, ...settings };
  bridge = await startBridges(
    { ...readSettings(yWebsocketSettings, { flags, env: {} }), production: false, allowedOrigins: [], clientAddressHeader: "", ...edge },
    { log, registry },
  );
}

beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 2 });
});
afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await bridge.stop();
});
afterAll(() => cluster?.stop());

type Visitor = { readonly doc: Y.Doc; readonly provider: WebsocketProvider };

/** The client as applications use it: with its own document and y-websocket's provider. */
async function visit(room: string, user: string, rights?: readonly string[]): Promise<Visitor> {
  return enter(room, await cluster.token(room, user, rights === undefined ? {} : { rights }));
}

type Entry = {
  readonly disableBc?: boolean;
  readonly socket?: new (url: string) => WebSocket;
  readonly shouldReconnect?: () => boolean;
};

function enter(room: string, token: string, { disableBc = true, socket = WebSocket, ...options }: Entry = {}): Visitor {
  const doc = new Y.Doc();
  const provider = new WebsocketProvider(`ws://127.0.0.1:${bridge.port}`, room, doc, {
    params: { token },
    WebSocketPolyfill: socket as unknown as typeof globalThis.WebSocket,
    disableBc,
    maxBackoffTime: 200,
    ...options,
  });
  ends.push(() => {
    provider.destroy();
    doc.destroy();
  });
  return { doc, provider };
}

async function join(room: string, user: string): Promise<CoroomProvider> {
  const provider = new CoroomProvider({ url: cluster.gateways[0]!.url, room, doc: new Y.Doc(), token: await cluster.token(room, user) });
  ends.push(() => provider.destroy());
  return provider;
}

const textOf = ({ doc }: { readonly doc: Y.Doc }): string => doc.getText("t").toJSON();
const write = ({ doc }: { readonly doc: Y.Doc }, text: string): void => doc.getText("t").insert(doc.getText("t").length, text);
const namesSeenBy = ({ provider: { awareness } }: Visitor): string =>
  [...awareness.getStates()]
    .filter(([client]) => client !== awareness.clientID)
    .map(([, state]) => String(state["name"]))
    .sort()
    .join();
const counted = async (name: string): Promise<number> =>
  (await registry.getSingleMetric(name)!.get()).values.reduce((sum, { value }) => sum + value, 0);

test("[YWS1] a y-websocket client writes with y-websocket and SDK clients, and is synced only with the complete room", async () => {
  await startBridge();
  const sdk = await join("with/others", "sdk");
  write(sdk, "from the SDK. ");
  await eventually("it is saved", () => sdk.synced && sdk.saved);
  const ann = await visit("with/others", "ann");
  const atSync = new Promise<string>((resolve) => ann.provider.once("sync", () => resolve(textOf(ann))));
  expect(await atSync).toBe("from the SDK. ");
  const bob = await visit("with/others", "bob");
  await eventually("Bob is in step", () => bob.provider.synced);
  write(ann, "from Ann. ");
  await eventually("Bob and the SDK have it", () => textOf(bob).endsWith("from Ann. ") && textOf(sdk) === textOf(ann));
  write(bob, "from Bob.");
  await eventually("all have all", () => [ann, bob, sdk].every((one) => textOf(one) === "from the SDK. from Ann. from Bob."));
});

test("[YWS2] each client sees the states of the others, once, and their removal", async () => {
  await startBridge();
  const [ann, bob, sdk] = [await visit("seen", "ann"), await visit("seen", "bob"), await join("seen", "sdk")];
  for (const [{ provider }, name] of [
    [ann, "Ann"],
    [bob, "Bob"],
  ] as const)
    provider.awareness.setLocalState({ name });
  sdk.awareness.setLocalState({ name: "SDK" });
  await eventually("each sees the others", () => namesSeenBy(ann) === "Bob,SDK" && namesSeenBy(bob) === "Ann,SDK");
  await eventually(
    "so does the SDK, each under its own number",
    () =>
      [...sdk.awareness.getStates().keys()].sort().join() === [ann.doc.clientID, bob.doc.clientID, sdk.awareness.clientID].sort().join(),
  );
  expect(sdk.awareness.getStates().get(ann.doc.clientID), "with its clock").toEqual({
    "name": "Ann",
    "y-websocket": ann.provider.awareness.meta.get(ann.doc.clientID)!.clock,
  });
  bob.provider.awareness.setLocalStateField("name", "Robert");
  await eventually("what changes is seen", () => namesSeenBy(ann) === "Robert,SDK");
  bob.provider.destroy();
  await eventually("who goes is not seen any more", () => namesSeenBy(ann) === "SDK");
});

test("[YWS3] a client with a read-only token reads, is informed that it may not write, and writes nothing", async () => {
  await startBridge();
  const warned = vi.spyOn(console, "warn").mockReturnValue();
  const [writer, reader] = [await visit("read", "writer"), await visit("read", "reader", ["read"])];
  await eventually("both are in step", () => writer.provider.synced && reader.provider.synced);
  write(reader, "not to be seen");
  await eventually("the client logs a warning", () => warned.mock.calls.some(([text]) => String(text).includes("does not allow writing")));
  write(writer, "seen");
  await eventually("it reads on", () => textOf(reader).includes("seen"));
  expect(textOf(writer)).toBe("seen");
  warned.mockRestore();
});

test("[YWS4] an invalid token ends the client permanently", async () => {
  await startBridge();
  const warned = vi.spyOn(console, "warn").mockReturnValue();
  const { provider } = enter("closed", "no token");
  const closed = await new Promise<{ code: number }>((resolve) =>
    provider.on("closed" as never, ((event: { code: number }) => resolve(event)) as never),
  );
  expect(closed.code).toBe(4401);
  expect(provider.shouldConnect).toBe(false);
  warned.mockRestore();
});

test("[YWS5] edits typed while bridge and gateway were killed arrive once, at every client", async () => {
  await startBridge();
  const { port } = bridge;
  const [ann, bob] = [await visit("kept", "ann"), await visit("kept", "bob")];
  await eventually("both are in step", () => ann.provider.synced && bob.provider.synced);
  write(ann, "a");
  const stopped = bridge.stop();
  write(ann, "b");
  await stopped;
  write(bob, "c");
  await startBridge({}, port);
  write(ann, "d");
  await eventually("they come back", () => textOf(ann) === textOf(bob) && textOf(ann).length === 4);
  await cluster.gateways[0]!.process.kill();
  write(ann, "e");
  write(bob, "f");
  await cluster.gateways[0]!.process.startAgain();
  await eventually("the bridge comes back by itself", () => textOf(ann) === textOf(bob) && textOf(ann).length === 6);
  const late = await visit("kept", "late");
  await eventually("the log has it", () => textOf(late) === textOf(ann));
  expect([...textOf(late)].sort().join("")).toBe("abcdef");
});

test("[YWS6] edits of a client that left at once are saved", async () => {
  await startBridge();
  const ann = await visit("hasty", "ann");
  await eventually("in step", () => ann.provider.synced);
  write(ann, "and gone");
  ann.provider.destroy();
  const bob = await visit("hasty", "bob");
  await eventually("Bob has it", () => textOf(bob) === "and gone");
  bob.provider.destroy();
  await eventually("nobody is counted", async () => (await counted("coroom_y_clients")) === 0);
});

test("[YWS7] a client above the limit is rejected, and admitted once another client has left", async () => {
  await startBridge({ yClientsMax: "1" });
  const ann = await visit("full", "ann");
  await eventually("Ann is in step", () => ann.provider.synced);
  const bob = await visit("full", "bob");
  await eventually("Bob is turned away", async () => (await counted("coroom_y_turned_away_total")) > 0);
  expect(bob.provider.synced).toBe(false);
  ann.provider.destroy();
  await eventually("Bob comes in", () => bob.provider.synced);
});

test("[YWS8] bytes that are not a message, update or state vector close the client, and none of them is written", async () => {
  await startBridge();
  const token = await cluster.token("hostile", "eve");
  const ann = await visit("hostile", "ann");
  for (const bytes of [[0xff], [0, 0, 3, 1, 2], [0, 2, 3, 9, 9, 9], [0, 1, 4, 1, 1, 5, 0]]) {
    const socket = new WebSocket(`ws://127.0.0.1:${bridge.port}/hostile?token=${token}`);
    const closed = new Promise<number>((resolve) => socket.on("close", resolve));
    socket.on("open", () => socket.send(new Uint8Array(bytes)));
    expect(await closed).toBe(4400);
  }
  await eventually("Ann is in step", () => ann.provider.synced);
  expect(textOf(ann)).toBe("");
});

test("[YWS9] a client is closed with a retry when its messages exceed the limit of bytes held before the join", async () => {
  await startBridge({ yHeldBytesMax: "1000" });
  const socket = new WebSocket(`ws://127.0.0.1:${bridge.port}/held?token=${await cluster.token("held", "eve")}`);
  const closed = new Promise<number>((resolve) => socket.on("close", resolve));
  socket.on("open", () => {
    for (let message = 0; message < 3; message++) socket.send(new Uint8Array([9, ...new Uint8Array(500)]));
  });
  expect(await closed).toBe(1013);
  expect(await counted("coroom_y_closes_total")).toBe(1);
});

test("[YWS10] a y-websocket client without a token, or with an invalid room id, receives the remedy and ends", async () => {
  await startBridge();
  const warned = vi.spyOn(console, "warn").mockReturnValue();
  for (const [room, params, remedy] of [
    ["room", {}, "params: { token }"],
    ["x".repeat(200), { token: "t" }, "a room id has"],
  ] as const) {
    const provider = new WebsocketProvider(`ws://127.0.0.1:${bridge.port}`, room, new Y.Doc(), {
      params,
      WebSocketPolyfill: WebSocket as unknown as typeof globalThis.WebSocket,
      disableBc: true,
    });
    ends.push(() => provider.destroy());
    const closed = new Promise<unknown>((resolve) => provider.on("closed" as never, resolve as never));
    expect(await closed).toEqual({ code: 4401, reason: expect.stringContaining(remedy) });
    expect(provider.shouldConnect).toBe(false);
    expect(warned.mock.calls.some(([text]) => String(text).includes(remedy))).toBe(true);
  }
  warned.mockRestore();
});

test("[YWS26] a socket whose URL names no room counts as a client until it is closed, and is closed if it is silent", async () => {
  await startBridge({ yClientsMax: "1", yHelloMsMax: "500" });
  const stranger = new WebSocket(`ws://127.0.0.1:${bridge.port}/room`);
  const closed = once(stranger, "close");
  await once(stranger, "open");
  expect(await counted("coroom_y_clients")).toBe(1);
  const next = new WebSocket(`ws://127.0.0.1:${bridge.port}/room`).on("error", () => {});
  const [, response] = (await once(next, "unexpected-response")) as [unknown, { statusCode: number }];
  expect(response.statusCode).toBe(503);
  next.terminate();
  expect((await closed)[0]).toBe(4508);
  await eventually("it counts no longer", async () => (await counted("coroom_y_clients")) === 0);
});

test("[YWS27] a request over plain HTTP receives an answer that names the clients of the port", async () => {
  await startBridge();
  const answer = await fetch(`http://127.0.0.1:${bridge.port}/`);
  expect([answer.status, await answer.text()]).toEqual([426, expect.stringContaining("WebsocketProvider")]);
});

test.for([
  ["requests", "GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1_000)],
  ["a body", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"],
] as const)("[YWS28] a connection is closed after its first plain request, and reads nothing of what follows: %s", async ([, bytes]) => {
  await startBridge();
  const socket = connect(bridge.port, "127.0.0.1").on("error", () => {}); // A write to a closed connection.
  let received = "";
  socket.on("data", (answer) => (received += answer.toString()));
  const closed = once(socket, "close");
  socket.write(bytes);
  await closed;
  expect(received.split("HTTP/1.1 426").length - 1).toBe(1);
  expect(received.toLowerCase()).toContain("connection: close");
});

test("[YWS29] connections whose request does not end are closed with 408", async () => {
  await startBridge({ yHelloMsMax: "500" });
  const answers = Array.from({ length: 20 }, async () => {
    const socket = connect(bridge.port, "127.0.0.1");
    let received = "";
    socket.on("data", (answer) => (received += answer.toString()));
    socket.write("GET /notes?token=t HTTP/1.1\r\nupgrade: webso");
    await once(socket, "close");
    return received.slice(0, 12);
  });
  expect(await Promise.all(answers)).toEqual(answers.map(() => "HTTP/1.1 408"));
}, 30_000); // Node closes them after 60 s by default.

test("[YWS11] the gateway receives the client's address from the load balancer, and pages of other origins are rejected and logged", async () => {
  const gateway = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  const forwardedFor = new Promise<unknown>((resolve) =>
    gateway.on("connection", (_, request) => resolve(request.headers["x-forwarded-for"])),
  );
  await once(gateway, "listening");
  const { port } = gateway.address() as { port: number };
  const warned: unknown[] = [];
  const log = { ...SILENT_LOG, warn: (facts: object) => void warned.push(facts) };
  const edge = { clientAddressHeader: "x-forwarded-for", allowedOrigins: ["https://app.example"] };
  await startBridge({ yGatewayUrl: `ws://127.0.0.1:${port}`, ySaveMsMax: "500" }, 0, edge, log);
  const knock = (headers: Readonly<Record<string, string>>): WebSocket =>
    new WebSocket(`ws://127.0.0.1:${bridge.port}/forwardedFor?token=t`, { headers });
  const stranger = await new Promise<number | undefined>((resolve) =>
    knock({ origin: "https://elsewhere.example" })
      .on("unexpected-response", (_, response) => resolve(response.statusCode))
      .on("error", () => {}),
  );
  expect(stranger).toBe(403);
  expect(warned).toEqual([{ origin: "https://elsewhere.example", times: 1 }]);
  const client = knock({ "origin": "https://app.example", "x-forwarded-for": "203.0.113.9" });
  client.on("open", () => client.send(new Uint8Array([0, 0, 1, 0]))); // The bridge admits the client with its first message.
  expect(await forwardedFor).toBe("203.0.113.9");
  client.terminate();
  gateway.close();
  for (const socket of gateway.clients) socket.terminate();
});

test("[YWS12] the bridge does not start without a gateway, and in production not while every origin is allowed", async () => {
  await startBridge();
  await expect(startBridge({}, 0, { production: true })).rejects.toThrow("COROOM_ALLOWED_ORIGINS");
  for (const yGatewayUrl of ["", "gateway:8080"]) await expect(startBridge({ yGatewayUrl })).rejects.toThrow("COROOM_Y_GATEWAY_URL");
});

test("[YWS13] tabs of one browser, which send each other their states, each keep their own state", async () => {
  await startBridge();
  const token = await cluster.token("tabs", "ann");
  const [one, other] = [enter("tabs", token, { disableBc: false }), enter("tabs", token, { disableBc: false })];
  const sdk = await join("tabs", "sdk");
  await eventually("both are in step", () => one.provider.synced && other.provider.synced);
  for (let caret = 1; caret <= 50; caret++) {
    for (const { provider } of [one, other]) {
      provider.awareness.setLocalStateField("caret", caret);
      expect(provider.awareness.getLocalState()!["caret"]).toBe(caret);
    }
    await new Promise((resolve) => setImmediate(resolve));
    for (const { provider } of [one, other]) expect(provider.awareness.getLocalState()!["caret"]).toBe(caret);
  }
  const seen = (): unknown[] => [one, other].map(({ doc }) => sdk.awareness.getStates().get(doc.clientID)?.["caret"]);
  await eventually("others see both, where they are now", () => seen().every((caret) => caret === 50));
  for (const { provider } of [one, other]) expect(provider.awareness.getLocalState()!["caret"]).toBe(50);
  const all = [one.doc.clientID, other.doc.clientID, sdk.awareness.clientID].toSorted().join();
  await eventually("a tab knows these three and no other", () => [...one.provider.awareness.getStates().keys()].toSorted().join() === all);
});

test("[YWS14] a page whose token has expired returns with a current one", async () => {
  await startBridge();
  const warned = vi.spyOn(console, "warn").mockReturnValue();
  const ann = enter("expiring", await cluster.token("expiring", "ann", { ttl: 3 }));
  await eventually("in step", () => ann.provider.synced);
  ann.provider.params = { token: await cluster.token("expiring", "ann") };
  let left = false;
  ann.provider.on("status", ({ status }: { status: string }) => (left ||= status === "disconnected"));
  await eventually("it is closed when the token expires", () => left);
  await eventually("and comes back", () => ann.provider.synced);
  write(ann, "still here");
  const bob = await visit("expiring", "bob");
  await eventually("Bob has it", () => textOf(bob) === "still here");
  warned.mockRestore();
});

test("[YWS14] a page that was away for longer than its token lasts returns, if it renews the token as the guide does", async () => {
  await startBridge();
  const silenced = (["warn", "error"] as const).map((level) => vi.spyOn(console, level).mockReturnValue());
  const fetchToken = (): Promise<string> => cluster.token("asleep", "ann");
  const { provider } = enter("asleep", await cluster.token("asleep", "ann", { ttl: -3_600 }), { shouldReconnect: () => true });
  const codes = new Set<number | undefined>();
  provider.on("connection-close", (event) => {
    codes.add(event?.code);
    fetchToken().then((fresh) => (provider.params = { token: fresh }), console.error);
  });
  await eventually("it is in step", () => provider.synced);
  expect([...codes]).toContain(4401);
  for (const spy of silenced) spy.mockRestore();
});

test("[YWS15] the bridge stops even if clients are silent, rejected but still connected, or do not answer a close", async () => {
  await startBridge();
  const { port } = bridge;
  const silent = connect({ port, host: "127.0.0.1" });
  const refused = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  for (const socket of [silent, refused]) socket.on("error", () => {}); // The bridge cuts the connection.
  refused.write(
    "GET / HTTP/1.1\r\nhost: h\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await once(refused, "data");
  const deaf = new WebSocket(`ws://127.0.0.1:${port}/deaf?token=${await cluster.token("deaf", "ann")}`);
  deaf.on("error", () => {});
  await once(deaf, "open");
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "said just before");
  deaf.send(new Uint8Array([0, 2, ...lengthAnd(Y.encodeStateAsUpdate(doc))]));
  await eventually("it is there", async () => (await counted("coroom_y_clients")) === 1);
  deaf.pause();
  await bridge.stop();
  expect(await counted("coroom_y_clients")).toBe(0);
  for (const socket of [silent, refused]) socket.destroy();
  deaf.terminate();
  await startBridge();
  const bob = await visit("deaf", "bob");
  await eventually("its last edit is saved", () => textOf(bob) === "said just before");
});

test("[YWS16] over TLS a bridge in the gateway's process receives the gateway's address", async () => {
  const { stderr } = await promisify(execFile)(process.execPath, ["dist/cli/main.js", "start", "--roles", "gateway,y-websocket"], {
    env: {
      COROOM_TLS_CERT_FILE: "cert.pem",
      COROOM_TLS_KEY_FILE: "key.pem",
      COROOM_JWT_SECRET: "x".repeat(32),
      COROOM_INTERNAL_SECRET: "x".repeat(32),
    },
  }).then(
    () => ({ stderr: "it started" }),
    (error: { stderr: string }) => error,
  );
  expect(stderr).toContain("COROOM_Y_GATEWAY_URL is not set. Over TLS");
  await startBridge(); // Kept until this test ends.
});

test("[YWS17] silent sockets that only answer pings are closed and no longer count", async () => {
  await startBridge({ yClientsMax: "2", yHelloMsMax: "500" });
  const token = await cluster.token("mute", "eve");
  const mute = [1, 2].map(() => new WebSocket(`ws://127.0.0.1:${bridge.port}/mute?token=${token}`));
  expect(await Promise.all(mute.map(async (socket) => (await once(socket, "close"))[0]))).toEqual([4508, 4508]);
  const ann = await visit("mute", "ann");
  await eventually("there is a place", () => ann.provider.synced);
  expect(await counted("coroom_y_closes_total")).toBeGreaterThanOrEqual(2); // Ann too, although her first message comes late.
});

test("[YWS18] clients without an accepted token are limited per address that the load balancer reports, and other addresses are still admitted", async () => {
  await startBridge({ yClientsPerAddressMax: "1" }, 0, { clientAddressHeader: "x-forwarded-for" });
  const knock = (address: string): Promise<number | undefined> =>
    new Promise((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${bridge.port}/counted?token=t`, { headers: { "x-forwarded-for": address } });
      ends.push(() => socket.terminate());
      socket.on("error", () => {}); // The bridge rejected the connection.
      socket.on("open", () => resolve(101)).on("unexpected-response", (_, response) => resolve(response.statusCode));
    });
  expect([await knock("203.0.113.9"), await knock("198.51.100.1, 203.0.113.9"), await knock("203.0.113.10")]).toEqual([101, 429, 101]);
  expect(await counted("coroom_y_turned_away_total")).toBe(1);

  class FromTheOffice extends WebSocket {
    constructor(url: string) {
      super(url, { headers: { "x-forwarded-for": "203.0.113.20" } });
      this.on("error", () => {}); // Rejected while the other one's token is not accepted yet; the provider tries again.
    }
  }
  const token = await cluster.token("office", "ann");
  const colleagues = ["ann", "ben"].map(() => enter("office", token, { socket: FromTheOffice }));
  await eventually("both colleagues behind one address are in the room", () => colleagues.every(({ provider }) => provider.synced));
});

test("[YWS19] a closed client that does not answer the close no longer counts after a few seconds", async () => {
  await startBridge({ yHelloMsMax: "100" });
  const deaf = new WebSocket(`ws://127.0.0.1:${bridge.port}/deaf?token=${await cluster.token("deaf", "eve")}`);
  ends.push(() => deaf.terminate());
  await once(deaf, "open");
  deaf.pause();
  await eventually("it is closed", async () => (await counted("coroom_y_closes_total")) === 1);
  await eventually("it is gone", async () => (await counted("coroom_y_clients")) === 0, 20_000); // ws waits for 30 s by default.
});

test("[YWS20] a message over the limit closes its sender, which no longer counts, and is shown in the metrics", async () => {
  await startBridge({ yMessageBytesMax: "1000" });
  const deaf = new WebSocket(`ws://127.0.0.1:${bridge.port}/long?token=${await cluster.token("long", "eve")}`);
  ends.push(() => deaf.terminate());
  await once(deaf, "open");
  deaf.send(new Uint8Array(1_001));
  deaf.pause();
  await eventually("it is closed", async () => (await registry.metrics()).includes('coroom_y_closes_total{code="1009"} 1'));
  await eventually("it is gone", async () => (await counted("coroom_y_clients")) === 0, 20_000); // ws waits for 30 s by default.
});

/** The request that opens a WebSocket on a raw socket. */
function upgradeTo(path: string): string {
  const head = [`GET ${path} HTTP/1.1`, "host: h", "upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13"];
  return `${head.join("\r\n")}\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
}

test("[YWS21] an endless message of an unverified client closes its socket once it exceeds the limit of held bytes", async () => {
  await startBridge({ yHeldBytesMax: "1000000" });
  const socket = connect(bridge.port, "127.0.0.1");
  ends.push(() => socket.destroy());
  socket.on("error", () => {}); // The bridge finally cuts the connection.
  socket.write(upgradeTo("/part?token=none"));
  await once(socket, "data");
  const begun = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0]); // A message of 32 MB.
  socket.write(Buffer.concat([begun, Buffer.alloc(8_000_000)]));
  await eventually("it is closed", async () => (await registry.metrics()).includes('coroom_y_closes_total{code="1013"} 1'));
  await eventually("it is gone", async () => (await counted("coroom_y_clients")) === 0, 20_000);
});

test("[YWS25] a client that breaks the protocol of WebSockets and does not answer the close no longer counts after a few seconds", async () => {
  await startBridge();
  const token = await cluster.token("broken", "eve");
  for (const broken of [
    [0xf2, 0x80, 0, 0, 0, 0], // Reserved bits: 1002.
    [0x81, 0x81, 0, 0, 0, 0, 0xff], // A text that is not UTF-8: 1007.
  ]) {
    const socket = connect({ port: bridge.port, host: "127.0.0.1", allowHalfOpen: true });
    ends.push(() => socket.destroy());
    socket.on("error", () => {}); // The bridge finally cuts the connection.
    socket.write(upgradeTo(`/broken?token=${token}`));
    await once(socket, "data");
    socket.write(Buffer.from([0x82, 0x84, 0, 0, 0, 0, 0, 0, 1, 0])); // The first step of y-websocket's protocol, with an empty document.
    await once(socket, "data"); // The room is joined.
    expect(await counted("coroom_y_clients")).toBe(1);
    socket.write(Buffer.from(broken));
    await eventually("it is gone", async () => (await counted("coroom_y_clients")) === 0, 20_000); // ws waits for 30 s by default.
  }
});

test("[YWS22] unfinished messages of verified clients cost a bounded amount of memory, and the oldest make room", async () => {
  const budget = 64 * 1024 ** 2;
  await startBridge({ yUnfinishedBytesMax: String(budget), yHeldBytesMax: "1000000", yMessageBytesMax: String(32 * 1024 ** 2) });
  const sockets: WebSocket[] = [];
  for (let index = 0; index < UNFINISHED_CLIENTS; index++) {
    const token = await cluster.token("unfinished", `eve-${index}`);
    const socket = new WebSocket(`ws://127.0.0.1:${bridge.port}/unfinished?token=${token}`);
    ends.push(() => socket.terminate());
    socket.on("error", () => {}); // A write to a connection that was cut.
    await once(socket, "open");
    socket.send(Uint8Array.of(0, 0, 1, 0)); // The first step of y-websocket's protocol, with an empty document.
    await once(socket, "message"); // The room is joined.
    sockets.push(socket);
  }
  const before = process.memoryUsage().rss;
  const bytes = 3 * 1024 ** 2;
  const header = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, bytes >> 16, 0, 0, 0, 0, 0, 0]);
  const unfinished = Buffer.alloc(bytes - 1);
  for (const socket of sockets) {
    const { _socket: stream } = socket as unknown as { _socket: Socket };
    stream.write(header);
    await new Promise((resolve) => stream.write(unfinished, resolve));
  }
  await eventually("most are cut", async () => {
    const open = sockets.filter(({ readyState }) => readyState === WebSocket.OPEN).length;
    return open > 0 && open * (bytes - 1) <= budget;
  });
  expect(await counted("coroom_y_unfinished_bytes")).toBeLessThanOrEqual(budget);
  const closed = await counted("coroom_y_closes_total");
  expect(closed).toBeGreaterThanOrEqual(UNFINISHED_CLIENTS - Math.floor(budget / (bytes - 1)) - 1);
  // With the test's own message of 3 MiB. Cut connections release their buffers when they are closed and collected.
  await eventually("the buffers of the others are released", () => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers < 96 * 1024 ** 2;
  });
  const grown = Math.round((process.memoryUsage().rss - before) / 1024 ** 2);
  console.log(`${UNFINISHED_CLIENTS} unfinished messages of 3 MiB less a byte: RSS grown by ${grown} MiB`);
  const honest = await visit("unfinished", "honest");
  write(honest, "x".repeat(1_000_000));
  await eventually(
    "a long honest message arrives",
    async () => textOf(await visit("unfinished", "reader")) !== undefined && honest.provider.synced,
  );
});

test("[YWS23] a client that only answers pings has no unfinished message", async () => {
  await startBridge();
  const socket = new WebSocket(`ws://127.0.0.1:${bridge.port}/quiet?token=${await cluster.token("quiet", "ann")}`);
  ends.push(() => socket.terminate());
  await once(socket, "open");
  for (const answer of ["", "an answer of its own"]) socket.pong(answer);
  socket.ping("a question");
  await once(socket, "pong"); // The bridge has read all of them.
  expect(await counted("coroom_y_unfinished_bytes")).toBe(0);
  socket.send(Uint8Array.of(0), { fin: false });
  socket.ping();
  await once(socket, "pong");
  expect(await counted("coroom_y_unfinished_bytes")).toBeGreaterThan(0);
});

/** Opens a room, and requests all of its content. */
async function request(room: string, user: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${bridge.port}/${room}?token=${await cluster.token(room, user)}`);
  ends.push(() => socket.terminate());
  socket.on("error", () => {}); // The bridge may cut the connection.
  await once(socket, "open");
  socket.send(Uint8Array.of(0, 0, 1, 0)); // The first step of y-websocket's protocol, with an empty document.
  return socket;
}

test("[YWS30] many sockets of a user that read nothing of a long document hold it once, and everybody else receives it", async () => {
  const [limit, part, parts] = [64 * 1024 ** 2, 900_000, 8];
  await startBridge({ yUnreadBytesMax: String(limit), yRoomBytesMax: String(limit) });
  for (let author = 0; author < parts; author++) {
    const { doc, provider } = await visit("unread", `author-${author}`); // Each within the rate of a user.
    await eventually("the room is open", () => provider.synced);
    doc.getText(`t${author}`).insert(0, "x".repeat(part));
  }
  const { doc } = await visit("unread", "reader");
  const lengths = (): number[] => Array.from({ length: parts }, (_, author) => doc.getText(`t${author}`).length);
  await eventually("the document is saved", () => lengths().every((length) => length === part), 30_000);
  collectGarbage();
  const before = process.memoryUsage().rss;
  for (let index = 0; index < UNREAD_CLIENTS; index++) (await request("unread", "eve")).pause();
  const unread = (): Promise<number> => counted("coroom_y_unread_bytes");
  await eventually("one socket has its answer", async () => (await unread()) > part);
  const received = await Promise.all(
    Array.from({ length: UNREAD_CLIENTS }, async (_, index) => {
      const socket = await request("unread", `honest-${index}`);
      return new Promise<number>((resolve) => {
        socket.on("message", (data: Buffer) => {
          if (data.byteLength < part) return;
          resolve(data.byteLength);
          socket.terminate();
        });
        socket.on("close", () => resolve(0)); // After the document it changes nothing.
      });
    }),
  );
  expect(received.filter((bytes) => bytes < parts * part)).toEqual([]);
  expect(await unread()).toBeLessThan(2 * parts * part);
  collectGarbage();
  const grown = Math.round((process.memoryUsage().rss - before) / 1024 ** 2);
  console.log(`${UNREAD_CLIENTS} sockets that do not read a document of 7 MiB: RSS grown by ${grown} MiB`);
}, 120_000);

test("[YWS31] pings of a client that reads nothing are not answered without end", async () => {
  await startBridge();
  const socket = await request("pings", "eve");
  await once(socket, "message"); // The room is joined.
  socket.pause();
  for (let sent = 0; sent < 60_000; sent++) socket.ping(Buffer.alloc(125));
  const pongs = new Promise((resolve) => socket.once("close", resolve));
  await eventually("all pings are read", async () => socket.bufferedAmount === 0 && (await counted("coroom_y_unread_bytes")) > 0);
  expect(await counted("coroom_y_unread_bytes")).toBeLessThan(1024 ** 2);
  socket.terminate();
  await pongs;
});

test("[YWS24] a user who is banned from everywhere receives no later edit of a room, though others of the bridge do", async () => {
  await startBridge();
  const [writer, banned] = [await visit("ban", "writer"), await visit("ban", "banned")];
  await eventually("both are in step", () => writer.provider.synced && banned.provider.synced);
  const closed = new Promise((resolve) => banned.provider.on("connection-close", (event) => resolve(event?.code)));
  const admin = await cluster.token("*", "admin", { rights: ["read", "admin"] });
  const answer = await fetch(`${cluster.gateways[0]!.url.replace(/^ws/, "http")}/v1/admin/ban`, {
    method: "POST",
    headers: { authorization: `Bearer ${admin}` },
    body: JSON.stringify({ user: "banned", seconds: 600 }),
  });
  expect([answer.status, await closed]).toEqual([200, 1013]);
  await eventually("it has connected again", () => banned.provider.wsconnected);
  write(writer, "secret");
  const late = await visit("ban", "late");
  await eventually("others read on", () => textOf(late) === "secret");
  expect(textOf(banned)).toBe("");
});

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

/** A length below 16,384 as lib0 encodes it, then the bytes. */
function lengthAnd(bytes: Uint8Array): number[] {
  const { length } = bytes;
  return [...(length < 128 ? [length] : [(length & 127) | 128, length >> 7]), ...bytes];
}
