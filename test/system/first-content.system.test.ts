/**
 * The first content of rooms from an application's own store, on a complete Coroom with two gateways. An HTTP server is
 * the application, and verifies each request with the library of Standard Webhooks.
 */

import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { HocuspocusProvider, HocuspocusProviderWebsocket } from "@hocuspocus/provider";
import { Registry } from "prom-client";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { WebsocketProvider } from "y-websocket";
import * as Y from "yjs";

import { yWebsocketSettings } from "../../bridges/config.ts";
import { startBridges } from "../../bridges/main.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { insertion, Person } from "./person.ts";
import { TRACE_TEXT } from "./traces.ts";

const SECRET = `whsec_${Buffer.from("a secret of the tests, 32 bytes!").toString("base64")}`;
const TIMEOUT_MS = 1_500;

type Requested = { readonly type: string; readonly data: { readonly tenant: string; readonly room: string } };
type Answer = (response: ServerResponse) => void;

let cluster: SystemCluster;
let application: Server;
const requested: Requested["data"][] = [];
const unsigned: unknown[] = [];
const answers = new Map<string, Answer>();

beforeAll(async () => {
  const webhook = new Webhook(SECRET);
  application = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      try {
        const { type, data } = webhook.verify(Buffer.concat(chunks).toString(), request.headers as Record<string, string>) as Requested;
        expect([request.url, type]).toEqual(["/content", "document.requested"]);
        requested.push(data);
        (answers.get(data.room) ?? none)(response);
      } catch (error) {
        unsigned.push(error);
        response.writeHead(401).end();
      }
    });
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
  const settings = {
    FIRST_CONTENT_URLS: `http://127.0.0.1:${(application.address() as AddressInfo).port}/content`,
    WEBHOOK_SECRETS: SECRET,
    FIRST_CONTENT_TIMEOUT_MS: String(TIMEOUT_MS),
    DOCUMENTS_LEASE_MS: "1000",
    DOCUMENTS_READ_MS: "50",
  };
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 2, settings });
});
afterAll(async () => {
  await cluster?.stop();
  application?.close().closeAllConnections();
  expect(unsigned).toEqual([]);
});

const none: Answer = (response) => response.writeHead(204).end();
const failure: Answer = (response) => response.writeHead(500).end();
const text =
  (words: string): Answer =>
  (response) => {
    const doc = new Y.Doc();
    doc.getText(TRACE_TEXT).insert(0, words);
    response.writeHead(200, { "content-type": "application/octet-stream" }).end(Y.encodeStateAsUpdate(doc));
  };
const requestsFor = (room: string): number => requested.filter((data) => data.room === room).length;
const enter = (room: string, name: string, gateway = 0): Promise<Person> =>
  Person.enter(cluster, cluster.gateways[gateway]!, room, name, { merging: false });

async function read(room: string, gateway = 0): Promise<{ readonly status: number; readonly body: string }> {
  const headers = { authorization: `Bearer ${await cluster.token(room, `reader of ${room}`, { rights: ["read"] })}` };
  const response = await fetch(`${cluster.gateways[gateway]!.httpUrl}/v1/rooms/${room}/text?type=${TRACE_TEXT}`, { headers });
  return { status: response.status, body: await response.text() };
}

async function write(room: string, words: string): Promise<number> {
  const headers = {
    "authorization": `Bearer ${await cluster.token(room, "backend")}`,
    "content-type": "application/octet-stream",
    "idempotency-key": words,
  };
  const url = `${cluster.gateways[0]!.httpUrl}/v1/rooms/${room}/edits`;
  return (await fetch(url, { method: "POST", headers, body: Buffer.from(insertion(words)) })).status;
}

test("[FCS1] two people who open a new room on two gateways at once find its content once, and it is not asked for again", async () => {
  answers.set("both", text("from the database"));
  const people = await Promise.all([enter("both", "ann", 0), enter("both", "bob", 1)]);
  for (const person of people) await person.untilText("from the database");
  expect(requestsFor("both")).toBeLessThanOrEqual(2);
  const asked = requestsFor("both");
  people[0]!.type(insertion("and typed "));
  await people[0]!.untilSaved();
  for (const person of people)
    await eventually(`${person.name} has both texts`, () => person.text.length === "from the databaseand typed ".length);
  expect(people.flatMap(({ disorders, errors }) => [...disorders, ...errors])).toEqual([]);
  for (const person of people) person.leave();

  const processes = [...cluster.roomServers, cluster.documentService, cluster.gateways[1]!.process];
  await Promise.all(processes.map(async (process) => (await process.kill(), process.startAgain())));
  answers.set("both", text("another content"));
  const cay = await enter("both", "cay", 1);
  await eventually("cay has the document", () => cay.text.length === "from the databaseand typed ".length);
  cay.leave();
  expect(requestsFor("both")).toBe(asked);
});

test("[FCS2] a room without content starts empty, and its members write at once", async () => {
  const ann = await enter("new", "ann");
  await eventually("ann is in the room", () => ann.room.synced);
  ann.type(insertion("first words"));
  await ann.untilSaved();
  const bob = await enter("new", "bob", 1);
  await bob.untilText("first words");
  expect(requestsFor("new")).toBe(1);
  for (const person of [ann, bob]) person.leave();
});

test("[FCS3] while the application fails nobody enters, and what was typed meanwhile follows the content", async () => {
  answers.set("flaky", failure);
  const ann = await enter("flaky", "ann");
  ann.type(insertion("typed outside "));
  await eventually("the application was asked twice", () => requestsFor("flaky") >= 2);
  expect([ann.room.synced, ann.room.unsavedEdits]).toEqual([false, 1]);
  expect(new Set(ann.errors.map((error) => ("reason" in error ? error.reason : error.kind)))).toEqual(new Set(["unavailable"]));
  expect(ann.errors[0]?.message).toMatch(/the application has not answered with the room's first content/);
  expect(await read("flaky")).toEqual({ status: 503, body: expect.stringContaining('"no-first-content"') as string });
  expect(await write("flaky", "from a backend")).toBe(503);
  answers.set("flaky", text("from the database"));
  await ann.untilSaved();
  const bob = await enter("flaky", "bob", 1);
  await eventually("bob has both texts", () => bob.text.includes("typed outside ") && bob.text.includes("from the database"));
  expect(bob.text).toHaveLength("typed outside from the database".length);
  for (const person of [ann, bob]) person.leave();
});

test("[FCS4] an application that is slow, sends a 404, too much or content that is none keeps the room closed", async () => {
  answers.set("slow", () => {});
  answers.set("missing", (response) => response.writeHead(404).end());
  answers.set("large", text("x".repeat(1_100_000)));
  answers.set("long", text("x".repeat(600_000))); // Below the limit of a body, above that of an edit.
  answers.set("wrong", (response) => response.writeHead(200, { "content-type": "application/octet-stream" }).end("no update"));
  answers.set("redirecting", (response) => response.writeHead(302, { location: "/content" }).end());
  const rooms = ["slow", "missing", "large", "long", "wrong", "redirecting"];
  const people = await Promise.all(rooms.map((room) => enter(room, "ann")));
  await eventually("each was asked for twice", () => rooms.every((room) => requestsFor(room) >= 2));
  expect(people.map(({ room }) => room.synced)).toEqual(rooms.map(() => false));
  for (const room of rooms) answers.set(room, text(`of ${room}`));
  for (const [index, room] of rooms.entries()) await people[index]!.untilText(`of ${room}`);
  for (const person of people) person.leave();
});

test("[FCS5] a first read or edit over HTTP and a reader who may not write find the content", async () => {
  answers.set("readers", text("from the database"));
  const readers = { token: (room: string, user: string) => cluster.token(room, user, { rights: ["read"] }) };
  const reader = await Person.enter(readers, cluster.gateways[0]!, "readers", "rea", { merging: false });
  await reader.untilText("from the database");
  reader.leave();
  answers.set("read", text("from the database"));
  expect(await read("read")).toEqual({ status: 200, body: "from the database" });
  answers.set("written", text("from the database"));
  expect(await write("written", "and a backend")).toBe(200);
  await eventually("the document has both", async () => (await read("written")).body.length === "from the databaseand a backend".length);
  expect((await read("none")).status).toBe(404);
  expect(["read", "written", "none"].map(requestsFor)).toEqual([1, 1, 1]);
});

test("[FCS6] a deleted room is not asked for", async () => {
  expect(await write("gone", "words")).toBe(200);
  const asked = requestsFor("gone");
  const token = await cluster.token("gone", "boss", { rights: ["admin"] });
  const headers = { authorization: `Bearer ${token}` };
  await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/gone`, { method: "DELETE", headers });
  const ann = await enter("gone", "ann", 1);
  await eventually("ann is turned away", () => ann.errors.length > 0);
  expect((await read("gone")).status).toBe(410);
  expect(requestsFor("gone")).toBe(asked);
  ann.leave();
});

async function startBridge() {
  const flags = { yPort: "0", yGatewayUrl: cluster.gateways[0]!.url };
  return startBridges(
    { ...readSettings(yWebsocketSettings, { flags, env: {} }), production: false, allowedOrigins: [], clientAddressHeader: "" },
    { log: SILENT_LOG, registry: new Registry() },
  );
}
const polyfill = WebSocket as unknown as typeof globalThis.WebSocket;

test("[FCS7] a y-websocket client is synced only with the content", async () => {
  answers.set("bridged", failure);
  const bridge = await startBridge();
  const doc = new Y.Doc();
  const provider = new WebsocketProvider(`ws://127.0.0.1:${bridge.port}`, "bridged", doc, {
    params: { token: await cluster.token("bridged", "ann") },
    WebSocketPolyfill: polyfill,
    disableBc: true,
    maxBackoffTime: 200,
  });
  try {
    const atSync = new Promise<string>((resolve) => provider.once("sync", () => resolve(doc.getText(TRACE_TEXT).toString())));
    await eventually("the application was asked", () => requestsFor("bridged") > 0);
    answers.set("bridged", text("from the database"));
    expect(await atSync).toBe("from the database");
  } finally {
    provider.destroy();
    await bridge.stop();
  }
});

test("[FCS8] of two documents on a Hocuspocus socket each is synced only with its content, and one that waits does not hold up the other", async () => {
  answers.set("waiting", failure);
  answers.set("ready", text("of the ready one"));
  const bridge = await startBridge();
  const websocketProvider = new HocuspocusProviderWebsocket({ url: `ws://127.0.0.1:${bridge.port}`, WebSocketPolyfill: polyfill });
  const open = async (name: string) => {
    const document = new Y.Doc();
    const token = await cluster.token(name, "ann");
    const words = (): string => document.getText(TRACE_TEXT).toString();
    let atSync: string | undefined;
    const onSynced = (): void => void (atSync ??= words());
    const provider = new HocuspocusProvider({ websocketProvider, name, document, token, onSynced });
    provider.attach();
    return { document, provider, words, atSync: () => atSync };
  };
  const [waiting, ready] = [await open("waiting"), await open("ready")];
  try {
    await eventually("the other document is synced", () => ready.provider.isSynced);
    expect(ready.atSync()).toBe("of the ready one");
    waiting.document.getText(TRACE_TEXT).insert(0, "typed outside ");
    await eventually("the application was asked twice", () => requestsFor("waiting") >= 2);
    expect(waiting.provider.isSynced).toBe(false);
    answers.set("waiting", text("from the database"));
    await eventually("the document is synced", () => waiting.provider.isSynced);
    expect(waiting.atSync()).toContain("from the database");
    await eventually("the typed text is saved", () => !waiting.provider.hasUnsyncedChanges);
    const whole = "typed outside from the database".length;
    await eventually("a reader has both", async () => (await read("waiting")).body.length === whole); // A read may be older than the last edit.
    expect([(await read("waiting")).body.includes("typed outside "), requestsFor("ready")]).toEqual([true, 1]);
  } finally {
    for (const { provider } of [waiting, ready]) provider.destroy();
    websocketProvider.destroy();
    await bridge.stop();
  }
});
