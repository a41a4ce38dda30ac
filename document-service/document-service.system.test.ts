/** The document service on a real nats-server: what it serves, keeps and trims, whatever is killed under it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { jetstream } from "@nats-io/jetstream";
import { headers } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import type { Engine } from "../engines/engine.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { encodeEditsRecord, encodeEpochRecord } from "../shared/bus/record.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/config.ts";
import { type ClientId, type Epoch, type Millis, type RoomKey, type Seq, type UserId } from "../shared/ids.ts";
import { connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { pinoLog } from "../shared/io/pino-log.ts";
import type { Running } from "../shared/lifecycle.ts";
import { sharedSettings } from "../shared/settings.ts";
import { eventually } from "../test/system/eventually.ts";
import { documentServiceSettings } from "./config.ts";
import { startDocumentService } from "./main.ts";

const SECRET = "a secret of the tests, 32 characters";
let dataDir: string;
let engine: Engine;
let nats: NatsConnection;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-documents-"));
  engine = await startNatsServer({ dataDir });
  nats = await connectNats({ servers: engine.url, name: "test" });
}, 120_000);
afterAll(async () => {
  await nats?.close();
  await engine?.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const ANN = { client: "annannannannann1" as ClientId, user: "ann" as UserId };

/** Stands in for a room server: appends a room's records with the log's own fencing. */
class Writer {
  readonly doc = new Y.Doc();
  readonly #environment: string;
  readonly #room: RoomKey;
  #streamSeq = 0;
  #seq = 0;
  #epoch = 0;
  #records = 0;

  constructor(environment: string, room: string) {
    this.#environment = environment;
    this.#room = room as RoomKey;
  }

  get seq(): number {
    return this.#seq;
  }

  async claim(): Promise<void> {
    this.#epoch += 1;
    await this.#append(encodeEpochRecord({ id: this.#id(), time: Date.now() as Millis, epoch: this.#epoch as Epoch, head: this.#seq as Seq }));
  }

  /** One record with an edit for each text, typed at the end. */
  async type(...texts: readonly string[]): Promise<void> {
    await this.append(texts.map((text) => this.#edit(text)));
  }

  async append(payloads: readonly Uint8Array[]): Promise<void> {
    const firstSeq = (this.#seq + 1) as Seq;
    const edits = payloads.map((payload, index) => ({ client: ANN.client, counter: firstSeq + index, parentSeq: this.#seq as Seq, payload }));
    this.#seq += payloads.length;
    await this.#append(encodeEditsRecord({ id: this.#id(), time: Date.now() as Millis, users: new Map([[ANN.client, ANN.user]]), edits: { epoch: this.#epoch as Epoch, firstSeq, edits } }));
  }

  #id(): string {
    return `server.${++this.#records}`;
  }

  #edit(text: string): Uint8Array {
    const made: Uint8Array[] = [];
    const collect = (edit: Uint8Array) => made.push(edit);
    this.doc.on("update", collect);
    this.doc.getText("text").insert(this.doc.getText("text").length, text);
    this.doc.off("update", collect);
    return made[0]!;
  }

  async #append(record: Uint8Array): Promise<void> {
    const expectation = headers();
    expectation.set("Nats-Expected-Last-Subject-Sequence", String(this.#streamSeq));
    const { seq } = await jetstream(nats).publish(subjectsOf(this.#environment).log(0, this.#room), record, { headers: expectation, timeout: 5_000 });
    this.#streamSeq = seq;
  }
}

async function start(environment: string, settings: Readonly<Record<string, string>> = {}): Promise<Running & { url: string }> {
  const flags = { environment, natsUrl: engine.url, internalSecret: SECRET, documentsLeaseMs: "400", ...settings };
  const config = readSettings({ ...sharedSettings, ...documentServiceSettings }, { flags, env: {} });
  return startDocumentService(config, { log: pinoLog({}, process.env["TEST_LOG"] ?? "silent"), registry: new Registry() });
}

function get(url: string, room: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/v1/rooms/${encodeURIComponent(room)}/snapshot`, { headers: { "x-coroom-internal": SECRET, "x-coroom-tenant": "acme", ...headers } });
}

async function text(url: string, room: string): Promise<{ status: number; seq: number; text: string }> {
  const response = await get(url, room);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const doc = new Y.Doc();
  if (response.status === 200) Y.applyUpdate(doc, bytes);
  return { status: response.status, seq: Number(response.headers.get("x-coroom-seq")), text: doc.getText("text").toString() };
}

test("[DOC1] whoever asks gets all edits ordered so far, with their position", { timeout: 60_000 }, async () => {
  const environment = "doc1";
  const service = await start(environment);
  const writer = new Writer(environment, "acme.notes");
  await writer.claim();
  await writer.type("hello", ", ");
  await writer.type("world");
  await eventually("the snapshot has all edits", async () => (await text(service.url, "notes")).seq === 3);
  expect(await text(service.url, "notes")).toEqual({ status: 200, seq: 3, text: "hello, world" });
  const response = await get(service.url, "notes");
  expect(response.headers.get("etag")).toBe('"1-3"');
  expect(response.headers.get("x-coroom-epoch")).toBe("1");
  expect((await get(service.url, "notes", { "if-none-match": '"1-3"' })).status).toBe(304);
  expect((await get(service.url, "notes", { "x-coroom-internal": "guess" })).status).toBe(401);
  expect((await get(service.url, "other")).status).toBe(404);
  await service.stop();
});
