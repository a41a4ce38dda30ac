/**
 * Appends per second of one room server to a log with three replicas and a sync to disk before each answer: records one
 * by one, and records of several rooms in atomic batches. Each room appends as soon as its last record is stored.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Registry } from "prom-client";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { type RoomId, roomKey, type ServerId, type TenantId } from "../shared/ids.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { flag, positiveInteger } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import type { Engine } from "../engines/engine.ts";
import { startNatsCluster } from "../engines/nats-cluster.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { jetstreamAppend } from "../room-server/io/jetstream-append.ts";
import { roomServerMetrics } from "../room-server/metrics.ts";
import type { RoomLog } from "../room-server/ports.ts";
import { defineExperiment } from "./experiment.ts";
import { cpuBetween, cpuByRole } from "./server-usage.ts";

type AppendBatchesOptions = {
  readonly rooms: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly natsServers: number;
  readonly syncAlways: boolean;
};
/** Microseconds of CPU for each append: of all nats-servers together, and of this process. */
type AppendFigures = { readonly perSecond: number; readonly natsMicros: number; readonly ownMicros: number };
type AppendRound = { readonly alone: AppendFigures; readonly batches: AppendFigures };

/** A keystroke's record with its metadata. */
const RECORD = new Uint8Array(250);
const WARM_MS = 1_000;

export async function measureAppendBatches(options: AppendBatchesOptions): Promise<readonly AppendRound[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-"));
  const { natsServers: members, syncAlways } = options;
  const engines =
    members === 1 ? [await startNatsServer({ dataDir, syncAlways })] : await startNatsCluster({ dataDir, members, syncAlways });
  const nats = await connectNats({ servers: engines.map(({ url }) => url).join(","), name: "bench" });
  try {
    const rounds: AppendRound[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const alone = await appendFor(nats, engines, `alone${round}`, false, options);
      rounds.push({ alone, batches: await appendFor(nats, engines, `batches${round}`, true, options) });
    }
    return rounds;
  } finally {
    await closeNats(nats);
    await Promise.all(engines.map((engine) => engine.stop()));
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Each round has a stream of its own. */
async function appendFor(
  nats: NatsConnection,
  engines: readonly Engine[],
  environment: string,
  takesBatches: boolean,
  { rooms, seconds, natsServers }: AppendBatchesOptions,
): Promise<AppendFigures> {
  const subjects = subjectsOf(environment);
  await ensureLogStreams(nats, subjects, { partitions: 1, replicas: natsServers });
  const unneeded = (): never => {
    throw new Error("a record was lost or refused: the figures would be wrong");
  };
  const append = jetstreamAppend(
    nats,
    subjects,
    { server: environment as ServerId, partitions: 1, appendAnswerMsMax: 30_000 },
    {
      readLast: unneeded,
      checkpoints: { newest: unneeded },
      clock: systemClock,
      log: SILENT_LOG,
      metrics: roomServerMetrics(new Registry()),
      takesBatches: () => takesBatches,
    },
  );
  const writing = { stopped: false, stored: 0, open: 0 };
  for (let room = 0; room < rooms; room++) keepAppending(append, roomKey("bench" as TenantId, `room${room}` as RoomId), writing);
  await sleep(WARM_MS);
  const processes = [...engines.map(({ pid }) => ({ role: "nats", pid })), { role: "own", pid: process.pid }];
  const [before, cpuBefore, from] = [writing.stored, cpuByRole(processes), performance.now()];
  await sleep(seconds * 1_000);
  const [stored, cpu, ms] = [writing.stored - before, cpuBetween(cpuBefore, cpuByRole(processes)), performance.now() - from];
  writing.stopped = true;
  while (writing.open > 0) await sleep(10);
  return { perSecond: (1_000 * stored) / ms, natsMicros: (1e6 * cpu["nats"]!) / stored, ownMicros: (1e6 * cpu["own"]!) / stored };
}

/** One record after the other, each after the answer to the one before. */
function keepAppending(
  append: RoomLog["append"],
  room: ReturnType<typeof roomKey>,
  writing: { stopped: boolean; stored: number; open: number },
): void {
  const next = (expectedStreamSeq: number): void => {
    if (writing.stopped) return;
    writing.open += 1;
    append(room, { id: "", expectedId: "", expectedStreamSeq, bytes: RECORD }, (outcome) => {
      if (outcome.kind !== "appended") throw new Error("another writer appends to the room: the figures would be wrong");
      writing.open -= 1;
      writing.stored += 1;
      next(outcome.streamSeq);
    });
  };
  next(0);
}

export const appendBatches = defineExperiment({
  name: "append-batches",
  summary: "appends per second to three synced replicas, record by record and in batches; a minute",
  settings: {
    rooms: { parse: positiveInteger, fallback: 50, meaning: "rooms that append at the same time" },
    seconds: { parse: positiveInteger, fallback: 5, meaning: "seconds of each measurement" },
    rounds: { parse: positiveInteger, fallback: 5, meaning: "rounds, each with both kinds" },
    natsServers: { parse: positiveInteger, fallback: 3, meaning: "nats-servers, and replicas of the log" },
    syncAlways: { parse: flag, fallback: true, meaning: "true: sync_interval always; false: nats-server's default" },
  },
  run: async (options, print) => {
    const rounds = await measureAppendBatches(options);
    print(
      "| round | alone: appends/s | batches: appends/s | ratio | CPU of nats-servers, µs | CPU of the room server, µs |\n|---|---|---|---|---|---|",
    );
    for (const [index, { alone, batches }] of rounds.entries())
      print(
        `| ${index + 1} | ${Math.round(alone.perSecond)} | ${Math.round(batches.perSecond)} | ${(batches.perSecond / alone.perSecond).toFixed(2)} | ${Math.round(alone.natsMicros)}, ${Math.round(batches.natsMicros)} | ${Math.round(alone.ownMicros)}, ${Math.round(batches.ownMicros)} |`,
      );
  },
});
