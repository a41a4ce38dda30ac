/**
 * What it costs to read what rooms put into their histories: out of a log in which all of them write in turn, each room's
 * records by themselves, and all in one pass. CPU of nats-server and of who reads, with a nats-server of its own.
 */

import { jetstream } from "@nats-io/jetstream";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startNatsServer } from "../engines/nats-server.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { type RoomId, roomKey, type TenantId } from "../shared/ids.ts";
import { readLog } from "../shared/io/follow-log.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { cpuBetween, cpuByRole, type ServerProcess } from "./cpu.ts";

export type TrimReadsOptions = { readonly rooms: number; readonly editsPerRoom: number };
/** Seconds of CPU. */
export type ReadCost = { readonly records: number; readonly natsServer: number; readonly reader: number };

/** A keystroke's record, with what stands beside it. */
const RECORD_BYTES = 250;
const APPENDS_AT_ONCE = 1_000;
const PARTITION = 0;
const subjects = subjectsOf("bench");
const stream = subjects.logStream(PARTITION);
const subjectOf = (room: number): string => subjects.log(PARTITION, roomKey("bench" as TenantId, `room${room}` as RoomId));

export async function measureTrimReads(options: TrimReadsOptions): Promise<{ readonly byRoom: ReadCost; readonly onePass: ReadCost }> {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-"));
  const engine = await startNatsServer({ dataDir });
  const nats = await connectNats({ servers: engine.url, name: "bench" });
  const processes = [
    { role: "nats-server", pid: engine.pid },
    { role: "reader", pid: process.pid },
  ];
  try {
    await ensureLogStreams(nats, subjects, { partitions: PARTITION + 1, replicas: 1 });
    await append(nats, options);
    const through = options.rooms * options.editsPerRoom;
    const onePass = await costOf(processes, () => readAll(nats, [undefined], through));
    const byRoom = await costOf(processes, () =>
      readAll(
        nats,
        Array.from({ length: options.rooms }, (_, room) => subjectOf(room)),
        through,
      ),
    );
    return { byRoom, onePass };
  } finally {
    await closeNats(nats);
    await engine.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function append(nats: NatsConnection, { rooms, editsPerRoom }: TrimReadsOptions): Promise<void> {
  const record = new Uint8Array(RECORD_BYTES);
  const client = jetstream(nats);
  const every = Array.from({ length: rooms * editsPerRoom }, (_, index) => subjectOf(index % rooms));
  for (let from = 0; from < every.length; from += APPENDS_AT_ONCE)
    await Promise.all(every.slice(from, from + APPENDS_AT_ONCE).map((subject) => client.publish(subject, record)));
}

async function readAll(nats: NatsConnection, wanted: readonly (string | undefined)[], through: number): Promise<number> {
  let records = 0;
  for (const subject of wanted) for await (const _ of readLog(nats, { stream, subject }, 0, through)) records += 1;
  return records;
}

async function costOf(processes: readonly ServerProcess[], read: () => Promise<number>): Promise<ReadCost> {
  const before = cpuByRole(processes);
  const records = await read();
  const cpu = cpuBetween(before, cpuByRole(processes));
  return { records, natsServer: cpu["nats-server"] ?? 0, reader: cpu["reader"] ?? 0 };
}
