/** The document service on a real nats-server: the documents that it serves, stores and trims while processes are killed. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, JetStreamApiError, jetstreamManager, type StoredMsg } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { type Checkpoint, isDeleted } from "../shared/bus/checkpoint.ts";
import { UndecodableEntry } from "../shared/bus/json-messages.ts";
import { encodeEditsRecord, encodeEpochRecord } from "../shared/bus/record.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { Prng } from "../shared/collections/prng.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { kvLeases } from "../shared/io/kv-leases.ts";
import { connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { pinoLog } from "../shared/io/pino-log.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { type ChildProcessHandle, spawnChild } from "../engines/child.ts";
import type { Engine } from "../engines/engine.ts";
import { postgresCase } from "../test/contract/object-store-cases.ts";
import { startTestNats } from "../test/contract/test-engines.ts";
import { soakLength } from "../test/soak.ts";
import { eventually } from "../test/system/eventually.ts";
import { documentServiceSettings } from "./config.ts";
import { jetstreamLog } from "./io/jetstream-log.ts";
import { kvCheckpoints } from "./io/kv-checkpoints.ts";
import { startDocumentService } from "./main.ts";

const WRONG_LAST_SEQUENCE = 10_071;
/** The time that NATS may take on a busy machine. */
const ANSWER_MS_MAX = 10_000;
const SECRET = "a secret of the tests, 32 characters";
let dataDir: string;
let engine: Engine;
let nats: NatsConnection;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-documents-"));
  engine = await startTestNats({ dataDir });
  nats = await connectNats({ servers: engine.url, name: "test" });
});
afterAll(async () => {
  await nats?.close();
  await engine?.stop();
  if (process.env["TEST_KEEP"] === undefined) rmSync(dataDir, { recursive: true, force: true });
});

const ANN = { client: "annannannannann1" as ClientId, user: "ann" as UserId };

/** Plays the room server: appends a room's records with the log's own fencing. */
class Writer {
  readonly doc = new Y.Doc();
  readonly #environment: string;
  readonly #room: RoomKey;
  #streamSeq = 0;
  #seq = 0;
  #epoch = 1;
  #records = 0;

  constructor(environment: string, room: string) {
    this.#environment = environment;
    this.#room = room as RoomKey;
  }

  get seq(): number {
    return this.#seq;
  }

  /** Begins an epoch, as an owner does. Without it, edits are appended in epoch 1. */
  async claim(): Promise<void> {
    if (this.#streamSeq > 0) this.#epoch += 1;
    await this.#append(
      encodeEpochRecord({ id: this.#id(), time: Date.now() as UnixMillis, epoch: this.#epoch as Epoch, head: this.#seq as Seq }),
    );
  }

  /** Appends one record with an edit for each text, typed at the end. */
  async type(...texts: readonly string[]): Promise<void> {
    await this.append(texts.map((text) => this.#edit(text)));
  }

  async append(payloads: readonly Uint8Array[]): Promise<void> {
    const firstSeq = (this.#seq + 1) as Seq;
    const edits = payloads.map((payload, index) => ({
      client: ANN.client,
      counter: firstSeq + index,
      parentSeq: this.#seq as Seq,
      payload,
    }));
    this.#seq += payloads.length;
    await this.#append(
      encodeEditsRecord({
        id: this.#id(),
        time: Date.now() as UnixMillis,
        users: new Map([[ANN.client, ANN.user]]),
        edits: { epoch: this.#epoch as Epoch, firstSeq, edits },
      }),
    );
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

  /**
   * Tries until the record is known to be stored: after a failure with the same bytes, after a mismatch with a look at
   * the log.
   */
  async #append(record: Uint8Array): Promise<void> {
    const subject = subjectsOf(this.#environment).log(0, this.#room);
    const expectation = headers();
    expectation.set("Nats-Expected-Last-Subject-Sequence", String(this.#streamSeq));
    for (;;) {
      const seq = await jetstream(nats)
        .publish(subject, record, { headers: expectation, timeout: 1_000 })
        .then(
          ({ seq }) => seq,
          (error: unknown) => this.#storedAt(subject, record, error),
        );
      if (seq === undefined) continue;
      this.#streamSeq = seq;
      return;
    }
  }

  /** Undefined: try again. */
  async #storedAt(subject: string, record: Uint8Array, error: unknown): Promise<number | undefined> {
    await sleep(20); // NATS is away, or the stream is not there yet.
    if (!(error instanceof JetStreamApiError) || error.code !== WRONG_LAST_SEQUENCE) return undefined;
    const last = await lastRecord(this.#environment, subject).catch(() => undefined);
    if (last !== undefined && Buffer.compare(last.data, record) !== 0) throw error;
    return last?.seq;
  }
}

async function lastRecord(environment: string, subject: string): Promise<StoredMsg | undefined> {
  const manager = await jetstreamManager(nats, { timeout: ANSWER_MS_MAX });
  return (await manager.streams.getMessage(subjectsOf(environment).logStream(0), { last_by_subj: subject })) ?? undefined;
}

type Settings = Readonly<Record<string, string>>;

function settingsOf(environment: string, settings: Settings): Settings {
  return { environment, natsUrl: engine.url, internalSecret: SECRET, documentsLeaseMs: "400", historySegmentMsMin: "1", ...settings };
}

async function start(environment: string, settings: Settings = {}): Promise<Running & { url: string }> {
  const config = readSettings({ ...sharedSettings, ...documentServiceSettings }, { flags: settingsOf(environment, settings), env: {} });
  return startDocumentService(config, { log: pinoLog({}, process.env["TEST_LOG"] ?? "silent"), registry: new Registry() });
}

/** Starts the built service in a process of its own, which the test can kill. */
function startProcess(environment: string, settings: Settings): Promise<ChildProcessHandle> {
  const script = `
    import { Registry } from "prom-client";
    import { documentServiceSettings } from "./dist/document-service/config.js";
    import { startDocumentService } from "./dist/document-service/main.js";
    import { readSettings } from "./dist/shared/settings/settings.js";
    import { pinoLog } from "./dist/shared/io/pino-log.js";
    import { sharedSettings } from "./dist/shared/settings/common-settings.js";
    const config = readSettings({ ...sharedSettings, ...documentServiceSettings }, { flags: ${JSON.stringify(settingsOf(environment, settings))}, env: {} });
    await startDocumentService(config, { log: pinoLog({}, "warn"), registry: new Registry() });`;
  return spawnChild({
    path: process.execPath,
    args: ["--input-type=module", "-e", script],
    env: {},
    cwd: resolve("."),
    logFile: join(dataDir, `${environment}.log`),
  });
}

async function checkpointOf(environment: string, room: string): Promise<Checkpoint | undefined> {
  const { checkpoint } = await (
    await kvCheckpoints(jetstream(nats, { timeout: ANSWER_MS_MAX }), subjectsOf(environment).checkpointsBucket, 1)
  ).read(room as RoomKey);
  return isDeleted(checkpoint) ? undefined : checkpoint;
}

/** The stream sequences of the room's records that the log still has. */
async function keptOf(environment: string, room: string): Promise<{ records: number; last: number }> {
  const [subjects, manager] = [subjectsOf(environment), await jetstreamManager(nats, { timeout: ANSWER_MS_MAX })];
  const subject = subjects.log(0, room as RoomKey);
  const { state } = await manager.streams.info(subjects.logStream(0), { subjects_filter: subject });
  const last = await lastRecord(environment, subject);
  return { records: state.subjects?.[subject] ?? 0, last: last?.seq ?? 0 };
}

/** Asks again while the room is not ready: a service that stood still for longer than its lease claims it again. */
async function get(url: string, room: string, headers: Record<string, string> = {}): Promise<Response> {
  let response: Response | undefined;
  await eventually(`${room} is answered for`, async () => {
    await response?.body?.cancel();
    response = await ask(url, room, headers);
    return response.status !== 503;
  });
  return response!;
}

function ask(url: string, room: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/v1/rooms/${encodeURIComponent(room)}/snapshot`, {
    headers: { "x-coroom-internal": SECRET, "x-coroom-tenant": "acme", ...headers },
  });
}

async function text(url: string, room: string): Promise<{ status: number; seq: number; text: string }> {
  const response = await get(url, room);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const doc = new Y.Doc();
  if (response.status === 200) Y.applyUpdate(doc, bytes);
  return { status: response.status, seq: Number(response.headers.get("x-coroom-seq")), text: doc.getText("text").toString() };
}

test("[DOC1] a reader gets all edits ordered so far, with their position", async () => {
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

test("[DOC5] a trim keeps the records from its bound on and the room's last record, and the next append still meets its expected sequence", async () => {
  const environment = "doc5";
  await (await start(environment)).stop(); // Creates the streams.
  const log = await jetstreamLog(nats, subjectsOf(environment), { partitions: 1, readMs: 20, answerMsMax: ANSWER_MS_MAX });
  const [writer, other] = [new Writer(environment, "acme.trimmed"), new Writer(environment, "acme.other")];
  for (let round = 0; round < 5; round++) {
    await writer.type("a");
    await other.type("b");
  }
  await log.trim("acme.trimmed" as RoomKey, 5); // The room's records are 1, 3, 5, 7 and 9. The bound is exclusive, so 5 stays.
  expect(await keptOf(environment, "acme.trimmed")).toEqual({ records: 3, last: 9 });
  expect(await keptOf(environment, "acme.other")).toEqual({ records: 5, last: 10 });
  await log.trim("acme.trimmed" as RoomKey, 9);
  expect(await keptOf(environment, "acme.trimmed")).toEqual({ records: 1, last: 9 });
  expect(await log.end("acme.trimmed" as RoomKey)).toEqual({ kind: "at", seq: 5 });
  await writer.type("c"); // The append expects 9.
  expect(await keptOf(environment, "acme.trimmed")).toEqual({ records: 2, last: 11 });
  await expect(new Writer(environment, "acme.trimmed").type("expects 0")).rejects.toMatchObject({ code: WRONG_LAST_SEQUENCE });
  await jetstream(nats).publish(subjectsOf(environment).log(0, "acme.other" as RoomKey), "a record of a later version");
  await expect(log.end("acme.other" as RoomKey)).rejects.toThrow(UndecodableEntry);
});

test.each([
  ["JetStream", undefined],
  ["PostgreSQL, which is killed twice", postgresCase],
])(
  "[DOC6] the service trims the log behind a snapshot, and a later reader still gets the complete document from %s",
  async (store, startStore) => {
    const environment = `doc6-${store.slice(0, 4)}`;
    const postgres = await startStore?.();
    const settings = {
      snapshotEditsMax: "10",
      snapshotIntervalMsMin: "1",
      replayWindowMs: "200",
      snapshotAgeMsMax: "500",
      ...(postgres && { snapshotsStore: "postgres", postgresUrl: postgres.server.url }),
    };
    const service = await start(environment, settings);
    const writer = new Writer(environment, "acme.old");
    await writer.claim();
    for (let round = 0; round < 50; round++) {
      await writer.type(`${round} `);
      if (round === 25) await postgres?.server.crash();
    }
    await eventually("the log is trimmed to its last record", async () => (await keptOf(environment, "acme.old")).records === 1);
    await eventually("the last edit is saved", async () => (await checkpointOf(environment, "acme.old"))?.seq === 50);
    await service.stop();
    await postgres?.server.crash();
    const later = await start(environment, settings);
    await eventually("the whole document is served", async () => (await text(later.url, "old")).status === 200);
    expect(await text(later.url, "old")).toEqual({ status: 200, seq: 50, text: writer.doc.getText("text").toString() });
    await writer.claim();
    await writer.type("more");
    await eventually("the edit after the trim is served", async () => (await text(later.url, "old")).seq === 51);
    await later.stop();
    await postgres?.stop();
  },
);

test("[DOC15] the service keeps log records that a leaderboard still has to count, and trims them if none ever ran or it stays away too long", async () => {
  const [environment, room] = ["doc15", "acme.counted"];
  const leases = await kvLeases(jetstream(nats), subjectsOf(environment).boardsBucket, 1);
  const settings = { snapshotEditsMax: "1", snapshotIntervalMsMin: "1", replayWindowMs: "50", boardsHoldMsMax: "5000" };
  const [writer, service] = [new Writer(environment, room), await start(environment, settings)];
  const writeFour = async (): Promise<void> => {
    for (let round = 0; round < 4; round++) {
      await writer.type(`${round} `);
      await sleep(10); // Records that are closer together than the plan marks them are trimmed together.
    }
  };
  await writeFour(); // Texts 1 to 4.
  await eventually("trimmed: no leaderboard ever ran", async () => (await keptOf(environment, room)).records === 1);

  let { revision } = await leases.read(0);
  const writeFloor = async (floor: number): Promise<void> => {
    const write = await leases.write(0, { holder: "a leaderboard", floor }, revision);
    revision = write.kind === "written" ? write.revision : revision;
  };
  await writeFloor(4);
  await service.stop();
  const later = await start(environment, { ...settings, boardsHoldMsMax: "3600000" });
  await writeFour(); // Texts 5 to 8.
  await eventually("all is in a snapshot", async () => (await checkpointOf(environment, room))?.seq === 8);
  await eventually("4 is counted and may go", async () => (await keptOf(environment, room)).records === 4);
  await writeFloor(6);
  await eventually("5 and 6 are counted and may go", async () => (await keptOf(environment, room)).records === 2);
  await (await new Kvm(jetstream(nats)).open(subjectsOf(environment).boardsBucket)).delete("partition.0"); // As docs/operations/leaderboard.md describes.
  await eventually("after the abandoned attempt its log has one record", async () => (await keptOf(environment, room)).records === 1);
  await later.stop();

  await leases.write(0, { holder: "a leaderboard", floor: 8 }, (await leases.read(0)).revision);
  const last = await start(environment, settings);
  await writeFour(); // Texts 9 to 12.
  await eventually("the log waits no longer", async () => (await keptOf(environment, room)).records === 1, 20_000);
  await last.stop();
});

test(
  "[DOC7] every document is complete in the end although the service and NATS are killed at random",
  { timeout: soakLength(240_000, 1_800_000) },
  async () => {
    const environment = "doc7";
    const settings = { snapshotEditsMax: "20", snapshotIntervalMsMin: "10", replayWindowMs: "300", snapshotAgeMsMax: "300" };
    const prng = new Prng(7);
    const writers = Array.from({ length: 5 }, (_, index) => new Writer(environment, `acme.room${index}`));
    let service = await startProcess(environment, settings);
    let isWriting = true;
    const written = Promise.all(
      writers.map(async (writer) => {
        await writer.claim();
        for (let round = 0; isWriting; round++) {
          await writer.type(`${round} `, "and ");
          await sleep(5); // As fast as many people type.
        }
      }),
    );
    for (let kill = 0; kill < soakLength(6, 60); kill++) {
      const [room, before] = [`acme.room${kill % 5}`, writers[kill % 5]!.seq];
      await eventually(
        "the service saves again",
        () =>
          checkpointOf(environment, room).then(
            (checkpoint) => (checkpoint?.seq ?? 0) > before,
            () => false,
          ),
        60_000,
      );
      await sleep(prng.below(300)); // At any point between two steps.
      if (kill % 3 === 2) {
        engine.kill("SIGKILL");
        await engine.restart();
      } else {
        service.kill("SIGKILL");
        await service.exited;
        service = await startProcess(environment, settings);
      }
    }
    isWriting = false;
    await written;
    service.kill("SIGKILL");
    const last = await start(environment, settings);
    for (const [index, writer] of writers.entries()) {
      await eventually(`room ${index} is served whole`, async () => (await text(last.url, `room${index}`)).seq === writer.seq);
      expect((await text(last.url, `room${index}`)).text).toBe(writer.doc.getText("text").toString());
      await eventually(`room ${index} is trimmed`, async () => (await keptOf(environment, `acme.room${index}`)).records === 1);
    }
    await last.stop();
  },
);

test("[DOC8] another service takes over from a paused one, which cannot put back an older checkpoint when it continues", async () => {
  const environment = "doc8";
  const settings = { snapshotEditsMax: "5", snapshotIntervalMsMin: "1", snapshotAgeMsMax: "200" };
  const writer = new Writer(environment, "acme.notes");
  const paused = await startProcess(environment, settings);
  await writer.claim();
  await writer.type("one ");
  await eventually("the first service saves", async () => (await checkpointOf(environment, "acme.notes"))?.seq === 1);
  await writer.type("two ");
  paused.kill("SIGSTOP");
  const standby = await start(environment, settings);
  for (let round = 0; round < 20; round++) await writer.type(`${round} `);
  await eventually("the second service saves", async () => (await checkpointOf(environment, "acme.notes"))?.seq === 22);
  paused.kill("SIGCONT");
  await writer.type("end");
  await eventually("the last edit is saved", async () => (await checkpointOf(environment, "acme.notes"))?.seq === 23);
  paused.kill("SIGKILL"); // One of the two has the room by now; stopping the other leaves this one to answer for it.
  await eventually("the second service has the room", async () => (await text(standby.url, "notes")).seq === 23);
  expect(await text(standby.url, "notes")).toEqual({ status: 200, seq: 23, text: writer.doc.getText("text").toString() });
  await standby.stop();
});

test("[DOC9] a stopping service hands over at once, with all edits in snapshots", async () => {
  const environment = "doc9";
  const settings = { documentsLeaseMs: "60000" };
  const first = await start(environment, settings);
  expect((await get(first.url, "notes")).status).toBe(404); // The first service answers for all rooms until the second one starts.
  const second = await start(environment, settings);
  const writer = new Writer(environment, "acme.notes");
  await writer.claim();
  await writer.type("kept");
  await eventually("the first serves", async () => (await text(first.url, "notes")).seq === 1);
  expect((await ask(second.url, "notes")).status).toBe(503);
  await first.stop();
  expect((await checkpointOf(environment, "acme.notes"))?.seq).toBe(1);
  await second.stop();
  const third = await start(environment, settings);
  await eventually("the next one serves", async () => (await text(third.url, "notes")).text === "kept");
  await third.stop();
});

test("[DOC10] a room whose edits are not Yjs updates does not affect other rooms, and its log stays complete", async () => {
  const environment = "doc10";
  const settings = { snapshotEditsMax: "2", snapshotIntervalMsMin: "1", replayWindowMs: "100", snapshotAgeMsMax: "100" };
  const service = await start(environment, settings);
  const [raw, poisoned, good] = ["acme.raw", "acme.poisoned", "acme.good"].map((room) => new Writer(environment, room));
  for (let round = 0; round < 10; round++) {
    await raw!.append([Buffer.from(`{"edit":${round}}`)]);
    await poisoned!.type(`${round} `);
    if (round === 3) await poisoned!.append([Uint8Array.of(255)]);
    await good!.type(`${round} `);
  }
  await eventually("the good room is trimmed", async () => (await keptOf(environment, "acme.good")).records === 1);
  await eventually(
    "the others are saved",
    async () => (await checkpointOf(environment, "acme.raw"))?.seq === 10 && (await checkpointOf(environment, "acme.poisoned"))?.seq === 11,
  );
  expect(await text(service.url, "good")).toMatchObject({ seq: 10, text: good!.doc.getText("text").toString() });
  expect(await text(service.url, "poisoned")).toMatchObject({ seq: 11, text: poisoned!.doc.getText("text").toString() });
  const refused = await get(service.url, "raw");
  expect([refused.status, await refused.json()]).toMatchObject([404, { error: "not-a-document" }]);
  expect((await keptOf(environment, "acme.raw")).records).toBe(10);
  await service.stop();
});
