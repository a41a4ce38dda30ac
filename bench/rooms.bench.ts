/**
 * Many rooms and few document services, killed, stopped and started at random while edits are appended: in the end every
 * room's document must be the one that its writer has, and nothing in it twice. And what a service weighs that knows of
 * all these rooms while few of them are edited. The log is written directly, fenced as room servers do it: what is
 * measured is the document service, on a real nats-server.
 */

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import { headers } from "nats";
import * as Y from "yjs";

import { type Child, spawnChild } from "../engines/child.ts";
import { claimFreePorts } from "../engines/free-port.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { encodeEditsRecord } from "../shared/bus/record.ts";
import { partitionOf, type Subjects, subjectsOf } from "../shared/bus/subjects.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { closeNats, connectNats } from "../shared/io/nats.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { Prng } from "../shared/prng.ts";
import { residentBytesOf } from "./memory.ts";

export type RoomsOptions = { readonly rooms: number; readonly editsPerRoom: number; readonly activeRooms: number; readonly services: number; readonly idleSeconds: number; readonly seed: number; readonly say: (line: string) => void };
export type RoomsOutcome = { readonly rooms: number; readonly edits: number; readonly kills: number; readonly stops: number; readonly starts: number; readonly writeSeconds: number; readonly readSeconds: number; readonly hash: string; readonly bytes: { readonly all: number; readonly idle: number; readonly bare: number } };

const PARTITIONS = 4;
const SECRET = "a secret of the bench, 32 characters";
const ENVIRONMENT = "rooms";
const ANN = { client: "annannannannann1" as ClientId, user: "ann" as UserId };
const WRITERS = 64;
const READERS = 32;
const FAULT_EVERY_MS = 1_500;
const READ_MS_MAX = 300_000;
const SETTINGS = { snapshotEditsMax: "20", snapshotIntervalMsMin: "200", snapshotAgeMsMax: "2000", replayWindowMs: "2000", documentIdleMsMax: "2000", documentsLeaseMs: "600", historySegmentMsMin: "1000", logPartitions: String(PARTITIONS) };

/** One room's only author, and so what its document must be. */
class Writer {
  readonly doc = new Y.Doc();
  readonly room: RoomKey;
  seq = 0;
  #streamSeq = 0;

  constructor(room: RoomKey) {
    this.room = room;
  }

  get text(): string {
    return this.doc.getText("text").toString();
  }

  async type(streams: JetStreamClient, subjects: Subjects): Promise<void> {
    const before = Y.encodeStateVector(this.doc);
    const text = this.doc.getText("text");
    text.insert(text.length, `${this.seq + 1} `);
    const edits = [{ client: ANN.client, counter: this.seq + 1, parentSeq: this.seq as Seq, payload: Y.encodeStateAsUpdate(this.doc, before) }];
    const time = Date.now() as UnixMillis;
    const record = encodeEditsRecord({ id: `bench.${this.room}.${this.seq}`, time, users: new Map([[ANN.client, ANN.user]]), edits: { epoch: 1 as Epoch, firstSeq: (this.seq + 1) as Seq, edits } });
    const fence = headers();
    fence.set("Nats-Expected-Last-Subject-Sequence", String(this.#streamSeq));
    this.#streamSeq = (await streams.publish(subjects.log(partitionOf(this.room, PARTITIONS), this.room), record, { headers: fence, timeout: 30_000 })).seq;
    this.seq += 1;
  }
}

class Services {
  readonly #natsUrl: string;
  readonly #dataDir: string;
  readonly #running = new Map<string, Child>();
  started = 0;

  constructor(natsUrl: string, dataDir: string) {
    this.#natsUrl = natsUrl;
    this.#dataDir = dataDir;
  }

  get urls(): string[] {
    return [...this.#running.keys()];
  }

  async start(): Promise<Child> {
    const [port = 0] = await claimFreePorts(1, "127.0.0.1");
    const flags = { ...SETTINGS, environment: ENVIRONMENT, natsUrl: this.#natsUrl, internalSecret: SECRET, documentsPort: String(port) };
    const script = `
      import { Registry } from "prom-client";
      import { documentServiceSettings } from "./dist/document-service/config.js";
      import { startDocumentService } from "./dist/document-service/main.js";
      import { readSettings } from "./dist/shared/config.js";
      import { pinoLog } from "./dist/shared/io/pino-log.js";
      import { sharedSettings } from "./dist/shared/settings.js";
      const service = await startDocumentService(readSettings({ ...sharedSettings, ...documentServiceSettings }, { flags: ${JSON.stringify(flags)}, env: {} }), { log: pinoLog({}, "warn"), registry: new Registry() });
      process.once("SIGTERM", () => service.stop().then(() => process.exit(0)));`;
    this.started += 1;
    const child = await spawnChild({ path: process.execPath, args: ["--input-type=module", "-e", script], env: {}, cwd: resolve("."), logFile: join(this.#dataDir, `service-${this.started}.log`) });
    this.#running.set(`http://127.0.0.1:${port}`, child);
    return child;
  }

  /** One of them, however it ends. */
  async end(index: number, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const [url, child] = [...this.#running][index % this.#running.size]!;
    this.#running.delete(url);
    child.kill(signal);
    await child.exited;
  }

  async stopAll(): Promise<void> {
    while (this.#running.size > 0) await this.end(0, "SIGKILL");
  }
}

export async function benchRooms(options: RoomsOptions): Promise<RoomsOutcome> {
  const { say } = options;
  const prng = new Prng(options.seed);
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-rooms-"));
  const engine = await startNatsServer({ dataDir: join(dataDir, "nats") });
  const nats = await connectNats({ servers: engine.url, name: "bench" });
  const services = new Services(engine.url, dataDir);
  const writers = Array.from({ length: options.rooms }, (_, index) => new Writer(`acme.room${index}` as RoomKey));
  const [streams, subjects] = [jetstream(nats), subjectsOf(ENVIRONMENT)];
  let [kills, stops, isWriting] = [0, 0, true];
  try {
    await ensureLogStreams(nats, subjects, { partitions: PARTITIONS, replicas: 1 });
    for (let count = 0; count < options.services; count++) await services.start();

    const disturb = async (): Promise<void> => {
      while (isWriting) {
        await sleep(prng.below(FAULT_EVERY_MS));
        const fate = prng.below(4);
        if (fate === 0 && services.urls.length <= options.services + 1) await services.start();
        else if (fate === 1 && services.urls.length > 1) {
          await services.end(prng.below(8), "SIGTERM");
          stops += 1;
        } else if (services.urls.length > 0) {
          await services.end(prng.below(8), "SIGKILL");
          kills += 1;
          await services.start();
        }
      }
    };
    const disturbed = disturb();
    const writeStart = performance.now();
    const left = writers.map(() => options.editsPerRoom);
    const open = writers.map((_, index) => index);
    await Promise.all(Array.from({ length: WRITERS }, async () => {
      while (open.length > 0) {
        const at = prng.below(open.length);
        const room = open[at]!;
        open[at] = open.at(-1)!;
        open.pop(); // Nobody else writes in it meanwhile.
        await writers[room]!.type(streams, subjects);
        if (--left[room]! > 0) open.push(room);
      }
    }));
    const writeSeconds = (performance.now() - writeStart) / 1000;
    isWriting = false;
    await disturbed;
    say(`${options.rooms * options.editsPerRoom} edits in ${options.rooms} rooms within ${writeSeconds.toFixed(1)} s; ${kills} services killed, ${stops} stopped, ${services.started} started`);

    const readStart = performance.now();
    await readAll(writers, services);
    const readSeconds = (performance.now() - readStart) / 1000;
    say(`every document read back within ${readSeconds.toFixed(1)} s is its writer's`);
    await services.stopAll();

    const bytes = await weigh(options, writers, services, () => Promise.all(writers.slice(0, options.activeRooms).map((writer) => writer.type(streams, subjects))));
    await readAll(writers.slice(0, options.activeRooms * 2), services);
    const hash = createHash("sha256").update(writers.map(({ room, text }) => `${room} ${text}`).join("\n")).digest("hex").slice(0, 12);
    return { rooms: options.rooms, edits: options.rooms * options.editsPerRoom, kills, stops, starts: services.started, writeSeconds, readSeconds, hash, bytes };
  } finally {
    isWriting = false;
    await services.stopAll();
    await closeNats(nats);
    await engine.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** A service that has just begun; the same when it has looked at all rooms; and when only the active ones were used for a while. */
async function weigh({ activeRooms, idleSeconds, say }: RoomsOptions, writers: readonly Writer[], services: Services, write: () => Promise<unknown>): Promise<RoomsOutcome["bytes"]> {
  const { pid } = await services.start();
  await readAll(writers.slice(0, 1), services);
  const bare = residentBytesOf(pid);
  await readAll(writers, services);
  const all = residentBytesOf(pid);
  for (let second = 0; second < idleSeconds; second++) {
    await write();
    await sleep(1_000);
  }
  const idle = residentBytesOf(pid);
  const megabytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(0)} MB`;
  say(`resident: ${megabytes(bare)} with one room read, ${megabytes(all)} after all ${writers.length} were, ${megabytes(idle)} after ${idleSeconds} s in which ${activeRooms} were edited every second`);
  return { all, idle, bare };
}

/** Until each is served as its writer has it. */
async function readAll(writers: readonly Writer[], services: Services): Promise<void> {
  const deadline = performance.now() + READ_MS_MAX;
  const waiting = [...writers];
  await Promise.all(Array.from({ length: READERS }, async () => {
    for (let writer = waiting.pop(); writer !== undefined; writer = waiting.pop()) {
      while (!(await isServed(writer, services))) {
        if (performance.now() > deadline) throw new Error(`${writer.room} is not served at ${writer.seq}`);
        await sleep(50);
      }
    }
  }));
}

async function isServed({ room, seq, text }: Writer, services: Services): Promise<boolean> {
  for (const url of services.urls) {
    const response = await fetch(`${url}/v1/rooms/${room.slice("acme.".length)}/snapshot`, { headers: { "x-coroom-internal": SECRET, "x-coroom-tenant": "acme" } }).catch(() => undefined);
    const bytes = new Uint8Array((await response?.arrayBuffer().catch(() => undefined)) ?? []);
    if (response?.status !== 200 || Number(response.headers.get("x-coroom-seq")) !== seq) continue;
    const doc = new Y.Doc();
    Y.applyUpdate(doc, bytes);
    if (doc.getText("text").toString() !== text) throw new Error(`${room} is served at ${seq} as another text than its writer has`);
    return true;
  }
  return false;
}
