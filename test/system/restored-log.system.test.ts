/**
 * The log's files are replaced by an earlier copy, all other stores stay newer, and no operator runs `coroom restore`.
 * The system must refuse edits, or give a new reader all acknowledged edits. It uses a real nats-server.
 */

import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";

import { afterEach, expect, test } from "vitest";
import * as Y from "yjs";

import { partitionOf, subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { askAgain } from "./ask-again.ts";
import { type Process, SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

const ROOM = "notes";
const PARTITIONS = 2;

let cluster: SystemCluster;
afterEach(() => cluster?.stop());

const processes = (): Process[] => [
  ...cluster.roomServers,
  ...cluster.documentServices,
  ...cluster.placements,
  ...cluster.gateways.map(({ process }) => process),
];

/** The folder in which NATS keeps the log of the room. */
function logFolder(): string {
  const stream = subjectsOf(cluster.environment).logStream(partitionOf(`default.${ROOM}` as RoomKey, PARTITIONS));
  return join(cluster.folder, "nats", "jetstream", "$G", "streams", stream);
}

/** Stops all processes and NATS, makes the change, and starts all again. */
async function whileStopped(change: () => void): Promise<void> {
  await Promise.all(processes().map((process) => process.stop()));
  cluster.nats.kill("SIGTERM");
  await cluster.nats.exited;
  change();
  await cluster.nats.restart();
  await Promise.all(processes().map((process) => process.startAgain()));
}

/** NATS writes nothing meanwhile, as in a snapshot of a disk. */
function whilePaused(copy: () => void): void {
  cluster.nats.kill("SIGSTOP");
  try {
    copy();
  } finally {
    cluster.nats.kill("SIGCONT");
  }
}

async function write(token: string, words: string): Promise<number> {
  const doc = new Y.Doc();
  doc.getText("text").insert(0, words);
  const body = Buffer.from(Y.encodeStateAsUpdate(doc));
  const { status, json } = await askAgain("an edit", async () => {
    const response = await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/${ROOM}/edits`, {
      method: "POST",
      headers: { "authorization": `Bearer ${token}`, "content-type": "application/octet-stream", "idempotency-key": words },
      body,
    });
    return { status: response.status, json: (await response.json()) as { error?: string; seq?: number } };
  });
  expect([status, json.error]).toEqual([200, undefined]);
  return json.seq!;
}

async function snapshot(token: string): Promise<{ readonly seq: number; readonly text: string }> {
  const response = await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/${ROOM}/snapshot`, {
    headers: { authorization: `Bearer ${token}` },
  });
  if (response.status !== 200) return { seq: 0, text: String(response.status) };
  const doc = new Y.Doc();
  Y.applyUpdate(doc, new Uint8Array(await response.arrayBuffer()));
  return { seq: Number(response.headers.get("x-coroom-seq")), text: doc.getText("text").toString() };
}

const lettersOf = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, index) => `<${prefix}${index}>`);

async function untilSnapshotHas(token: string, words: readonly string[]): Promise<void> {
  const missing = async (): Promise<string[]> => {
    const { text } = await snapshot(token);
    return words.filter((word) => !text.includes(word));
  };
  let lacks: readonly string[] = words;
  await eventually("a fresh reader has everything that was acknowledged", async () => (lacks = await missing()).length === 0, 60_000).catch(
    (cause: unknown) => {
      throw new Error(`the snapshot lacks ${lacks.join(" ")}`, { cause });
    },
  );
}

test.each([
  ["trims at once", { HISTORY_MS_MAX: "0", REPLAY_WINDOW_MS: "500" }],
  ["keeps its history", {}],
] as const)(
  "[LOSTEND1] over a log that was put back from an earlier copy, a system that %s loses no edit that it acknowledges",
  async (_, more) => {
    const settings = {
      LOG_PARTITIONS: String(PARTITIONS),
      SNAPSHOT_AGE_MS_MAX: "200",
      SNAPSHOT_INTERVAL_MS_MIN: "50",
      SNAPSHOT_SHARED_MS: "0",
      DOCUMENTS_LEASE_MS: "1000",
      DOCUMENTS_READ_MS: "50",
      DOCUMENT_WRITE_BURST: "500",
      SNAPSHOT_BURST: "1000",
      SNAPSHOTS_PER_SECOND: "100",
      ...more,
    };
    cluster = await SystemCluster.start({ gateways: 1, roomServers: 2, settings });
    const token = await cluster.token("*", "backend");
    const [early, late, after] = [lettersOf("early", 4), lettersOf("late", 20), lettersOf("after", 30)];
    for (const words of early) await write(token, words);
    await untilSnapshotHas(token, early);
    const copy = join(cluster.folder, "copy");
    whilePaused(() => cpSync(logFolder(), copy, { recursive: true }));
    await Promise.all(cluster.roomServers.map((server) => server.restart())); // The copy lacks the epoch of the late edits.
    let seq = 0;
    for (const words of late) seq = await write(token, words);
    await untilSnapshotHas(token, [...early, ...late]);

    await whileStopped(() => {
      rmSync(logFolder(), { recursive: true });
      cpSync(copy, logFolder(), { recursive: true });
    });
    for (const words of after) {
      const next = await write(token, words);
      expect(next).toBeGreaterThan(seq); // No seq is given again.
      seq = next;
    }
    const everything = [...early, ...late, ...after];
    await untilSnapshotHas(token, everything);
    await Promise.all(cluster.documentServices.map((service) => service.restart()));
    await untilSnapshotHas(token, everything);
  },
);
