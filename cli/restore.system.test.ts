/**
 * Restores rooms after the log, the snapshots or all of NATS was lost or rolled back. It uses a real nats-server, with
 * snapshots in a folder.
 */

import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as Y from "yjs";

import { encodeEditsRecord, encodeEpochRecord } from "../shared/bus/record.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { pinoLog } from "../shared/io/pino-log.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { documentServiceSettings } from "../document-service/config.ts";
import { startDocumentService } from "../document-service/main.ts";
import type { Engine } from "../engines/engine.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { eventually } from "../test/system/eventually.ts";
import { restoreSettings } from "./command-settings.ts";
import { restore, restoreRooms } from "./restore.ts";

const APPEND_MS_MAX = 30_000;
const ENVIRONMENT = "restored";
const SECRET = "a secret of the tests, 32 characters";
const ROOM = "acme.notes" as RoomKey;
const SUBJECTS = subjectsOf(ENVIRONMENT);
const ANN = { client: "annannannannann1" as ClientId, user: "ann" as UserId };
const EAGER = {
  snapshotEditsMax: "1",
  snapshotAgeMsMax: "100",
  snapshotIntervalMsMin: "1",
  replayWindowMs: "100",
  historySegmentMsMin: "1",
  documentsLeaseMs: "300",
  documentsReadMs: "50",
};

let root: string;
let engine: Engine;
let nats: NatsConnection;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "coroom-restore-"));
  engine = await startNatsServer({ dataDir: join(root, "nats") });
  nats = await connectNats({ servers: engine.url, name: "test" });
});
afterEach(async () => {
  await closeNats(nats);
  await engine.stop();
  rmSync(root, { recursive: true, force: true });
});

const flags = () => ({
  environment: ENVIRONMENT,
  natsUrl: engine.url,
  logPartitions: "1",
  snapshotsStore: "folder",
  snapshotsFolder: join(root, "objects"),
});

function start() {
  const config = readSettings(
    { ...sharedSettings, ...documentServiceSettings },
    { flags: { ...flags(), internalSecret: SECRET, ...EAGER }, env: {} },
  );
  return startDocumentService(config, { log: pinoLog({}, "silent"), registry: new Registry() });
}

/** Returns the output of the command, without its wait for running processes. */
async function restored(lines: string[] = []): Promise<string[]> {
  await restoreRooms(nats, readSettings(restoreSettings, { flags: flags(), env: {} }), (line) => lines.push(line));
  return lines;
}

/** Writes records like an owner: an epoch record, then one edit per letter. */
async function write(doc: Y.Doc, epoch: number, head: number, letters: string): Promise<void> {
  const time = Date.now() as UnixMillis;
  await append(encodeEpochRecord({ id: `owner.${epoch}`, time, epoch: epoch as Epoch, head: head as Seq }));
  for (const [index, letter] of [...letters].entries()) {
    const before = Y.encodeStateVector(doc);
    doc.getText("text").insert(doc.getText("text").length, letter);
    await appendEdit(epoch, head + index + 1, Y.encodeStateAsUpdate(doc, before));
  }
}

async function appendEdit(epoch: number, seq: number, payload: Uint8Array): Promise<void> {
  const edits = [{ client: ANN.client, counter: seq, parentSeq: (seq - 1) as Seq, payload }];
  await append(
    encodeEditsRecord({
      id: `owner.${epoch}.${seq}`,
      time: Date.now() as UnixMillis,
      users: new Map([[ANN.client, ANN.user]]),
      edits: { epoch: epoch as Epoch, firstSeq: seq as Seq, edits },
    }),
  );
}

function append(record: Uint8Array): Promise<unknown> {
  return jetstream(nats, { timeout: APPEND_MS_MAX }).publish(SUBJECTS.log(0, ROOM), record);
}

const logFolder = (folder: string): string => join(folder, "jetstream", "$G", "streams", SUBJECTS.logStream(0));

/** Runs the change while the nats-server is stopped. */
async function stopped(change: () => void): Promise<void> {
  await closeNats(nats);
  await engine.stop();
  change();
  engine = await startNatsServer({ dataDir: join(root, "nats") });
  nats = await connectNats({ servers: engine.url, name: "test" });
}

const backUpLog = (): Promise<void> => stopped(() => cpSync(logFolder(join(root, "nats")), join(root, "backup"), { recursive: true }));

const rollLogBack = (): Promise<void> =>
  stopped(() => {
    rmSync(logFolder(join(root, "nats")), { recursive: true });
    cpSync(join(root, "backup"), logFolder(join(root, "nats")), { recursive: true });
  });

async function served(url: string): Promise<string> {
  const response = await fetch(`${url}/v1/rooms/notes/snapshot`, { headers: { "x-coroom-internal": SECRET, "x-coroom-tenant": "acme" } });
  if (response.status !== 200) return String(response.status);
  const doc = new Y.Doc();
  Y.applyUpdate(doc, new Uint8Array(await response.arrayBuffer()));
  return `${response.headers.get("x-coroom-seq")} ${doc.getText("text").toString()}`;
}

/** Waits until the document is saved, and the log is trimmed to its last record. */
async function settled(doc: Y.Doc, seq: number): Promise<void> {
  const service = await start();
  const text = doc.getText("text").toString();
  await eventually(`the room is at ${seq} ${text}`, async () => (await served(service.url)) === `${seq} ${text}`, 30_000);
  const manager = await jetstreamManager(nats);
  await eventually(
    "the log is trimmed",
    async () =>
      Object.values((await manager.streams.info(SUBJECTS.logStream(0), { subjects_filter: ">" })).state.subjects ?? {}).every(
        (count) => count === 1,
      ),
    30_000,
  );
  await service.stop();
}

test("[RST1] after a lost log, numbering continues above every position that was ever used: saved edits remain, and new edits are stored", async () => {
  const doc = new Y.Doc();
  await (await start()).stop(); // Creates the streams.
  await write(doc, 1, 0, "abc");
  await settled(doc, 3);
  await (await jetstreamManager(nats)).streams.delete(SUBJECTS.logStream(0));
  expect((await restored()).join()).toContain("new records start after");
  expect((await restored()).join()).not.toContain("new records start after");
  await write(doc, 2, 3, "de");
  await settled(doc, 5);
});

test("[RST2] a log that was rolled back keeps its records, and continues above every position that was ever used", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  await backUpLog();
  await write(doc, 2, 3, "def");
  await settled(doc, 6);
  await rollLogBack();
  expect((await restored()).join()).toContain("new records start after");
  await write(doc, 3, 6, "g");
  await settled(doc, 7);
});

test("[RST3] lost snapshots are rebuilt from history and the log", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abcdef");
  await settled(doc, 6);
  rmSync(join(root, "objects", SUBJECTS.snapshotsBucket), { recursive: true });
  expect(await restored()).toEqual([
    `${ROOM}: rebuilt up to seq 6`,
    "1 rooms checked, 1 rebuilt, 0 edits missing. Rooms that have no checkpoint, no snapshot and no history were not checked: only the log can have their edits",
  ]);
  await write(doc, 2, 6, "g");
  await settled(doc, 7);
});

test("[RST4] when all of NATS is lost, documents and history come back from the folder", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abcdef");
  await settled(doc, 6);
  await stopped(() => rmSync(join(root, "nats"), { recursive: true }));
  expect(await restored()).toEqual(
    expect.arrayContaining([
      `${ROOM}: rebuilt up to seq 6`,
      "1 rooms checked, 1 rebuilt, 0 edits missing. Rooms that have no checkpoint, no snapshot and no history were not checked: only the log can have their edits",
    ]),
  );
  await write(doc, 2, 6, "gh");
  await settled(doc, 8);
});

test("[RST5] after a rollback without newer snapshots, the log's content is served, and a client resends its missing edits", async () => {
  const [doc, kept] = [new Y.Doc(), new Y.Doc()];
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  await backUpLog();
  Y.applyUpdate(kept, Y.encodeStateAsUpdate(doc));
  await write(kept, 2, 3, "def"); // No document service has run since the rollback.
  await rollLogBack();
  expect((await restored()).join()).toContain(
    "0 rebuilt, 0 edits missing. Rooms that have no checkpoint, no snapshot and no history were not checked: only the log can have their edits",
  );
  await settled(doc, 3);
  await write(doc, 2, 3, "x");
  await appendEdit(2, 5, Y.encodeStateAsUpdate(kept, Y.encodeStateVector(doc))); // The SDK resends this after it learns that its position is not in this log.
  Y.applyUpdate(doc, Y.encodeStateAsUpdate(kept));
  await settled(doc, 5);
  expect([...doc.getText("text").toString()].toSorted().join("")).toBe("abcdefx");
});

test("[RST6] a deleted room stays deleted after the log is lost and its objects are restored from a backup", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  await settled(doc, 3);
  const [objects, backup] = [join(root, "objects"), join(root, "backup")];
  cpSync(objects, backup, { recursive: true });
  const filesOf = (folder: string) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;
  expect(filesOf(backup)).toBeGreaterThan(1);
  const service = await start();
  const remove = () =>
    fetch(`${service.url}/v1/rooms/notes`, { method: "DELETE", headers: { "x-coroom-internal": SECRET, "x-coroom-tenant": "acme" } });
  await eventually("it is deleted", async () => (await remove()).status === 200);
  await service.stop();
  expect(filesOf(objects)).toBe(0);

  cpSync(backup, objects, { recursive: true });
  await (await jetstreamManager(nats)).streams.delete(SUBJECTS.logStream(0));
  expect((await restored()).at(-1)).toContain("0 rebuilt");
  const after = await start();
  await eventually("it is known to be deleted", async () => (await served(after.url)) === "410");
  await eventually("what was put back is removed", () => filesOf(objects) === 0);
  await after.stop();
});

test("[RST7] a room that cannot be restored is named and does not block others, and its history still counts for the numbering", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  await settled(doc, 3);
  const [snapshots, kvm] = [join(root, "objects", SUBJECTS.snapshotsBucket), new Kvm(jetstream(nats))];
  rmSync(snapshots, { recursive: true });
  mkdirSync(join(snapshots, "acme.bad"), { recursive: true });
  writeFileSync(join(snapshots, "acme.bad", "1-1-torn"), "torn");
  await (await kvm.open(SUBJECTS.checkpointsBucket)).put("acme.bad", "of a newer version");
  await (await kvm.open(SUBJECTS.historyBucket)).put("acme.bad", JSON.stringify({ versions: [], segments: [], through: 500 }));

  const printed: string[] = [];
  await expect(restored(printed)).rejects.toThrow("1 rooms were not restored: acme.bad.");
  expect(printed[0]).toContain("acme.bad: not restored: the checkpoint of room acme.bad does not decode");
  expect(printed).toContain(`${ROOM}: rebuilt up to seq 3`);
  expect(printed.join()).toContain("checkpoints refer to 500");
  expect(printed.at(-1)).toBe(
    "2 rooms checked, 1 rebuilt, 0 edits missing. Rooms that have no checkpoint, no snapshot and no history were not checked: only the log can have their edits",
  );
});

const FILLER = `${ENVIRONMENT}.log.0.=.filler`;

/** Simulates a history that archived records up to this sequence before the log was rolled back. */
async function speakOf(streamSeq: number): Promise<void> {
  const histories = await new Kvm(jetstream(nats)).open(SUBJECTS.historyBucket);
  const entry = (await histories.get(ROOM))?.json<object>() ?? { versions: [], segments: [] };
  await histories.put(ROOM, JSON.stringify({ ...entry, through: streamSeq }));
}

async function numbers(): Promise<{ last: number; records: number }> {
  const { state } = await (await jetstreamManager(nats)).streams.info(SUBJECTS.logStream(0));
  return { last: state.last_seq, records: state.messages };
}

test("[RST8] the restore uses up more numbers than a stream accepts at once", async () => {
  const NUMBERS = 400_000;
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  await settled(doc, 3);
  const { records } = await numbers();
  await speakOf(NUMBERS);
  expect((await restored()).join()).toContain(`checkpoints refer to ${NUMBERS}`);
  expect(await numbers()).toEqual({ last: NUMBERS, records });
});

test("[RST9] the next run removes fillers of an interrupted run, even when no number is missing", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  const { records } = await numbers();
  for (const content of ["", "", "f"]) await jetstream(nats, { timeout: APPEND_MS_MAX }).publish(FILLER, content);
  const { last } = await numbers();
  expect((await restored()).join()).not.toContain("new records start after");
  expect(await numbers()).toEqual({ last, records });
  await write(doc, 2, 3, "d");
  await settled(doc, 4);
});

test("[RST10] no filler is empty, because an empty message ends a read", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  await settled(doc, 3);
  const { last } = await numbers();
  await speakOf(last + 5);
  const bytes: number[] = [];
  nats.subscribe(FILLER, { callback: (_, { data }) => void bytes.push(data.byteLength) });
  await nats.flush();
  await restored();
  await nats.flush();
  expect(bytes).toEqual([1, 1, 1, 1, 1]);
});

test("[RST11] sequences that only an emptied history refers to count as well", async () => {
  await (await start()).stop();
  await (
    await new Kvm(jetstream(nats)).open(SUBJECTS.historyBucket)
  ).put("acme.old", JSON.stringify({ versions: [], segments: [], through: 500 }));
  expect(await restored()).toEqual([
    "partition 0 of the log ends at 0, but checkpoints refer to 500: new records start after 500",
    "1 rooms checked, 0 rebuilt, 0 edits missing. Rooms that have no checkpoint, no snapshot and no history were not checked: only the log can have their edits",
  ]);
});

test("[RST12] beside a running document service the command names it and restores nothing", async () => {
  const doc = new Y.Doc();
  await (await start()).stop();
  await write(doc, 1, 0, "abc");
  await settled(doc, 3);
  rmSync(join(root, "objects", SUBJECTS.snapshotsBucket), { recursive: true });
  const service = await start();
  const printed: string[] = [];
  const config = readSettings(restoreSettings, { flags: flags(), env: {} });
  await expect(restore(config, (line) => printed.push(line))).rejects.toThrow(
    /restore needs a stopped system, and these run: a document-service that sends to restored\.documents.*Stop all processes.*coroom start --roles engines/,
  );
  expect(printed).toEqual([]);
  await service.stop();
  await restore(config, (line) => printed.push(line));
  expect(printed.at(-1)).toMatch(/^1 rooms checked/);
});
