/**
 * CPU to read the records that rooms move into their histories, from a log in which all rooms write in turn. Compares
 * separate reads for each room with one pass for all rooms. Measured for the nats-server and for the reading process.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream } from "@nats-io/jetstream";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { type RoomId, roomKey, type TenantId } from "../shared/ids.ts";
import { readLog } from "../shared/io/log-reader.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { positiveInteger } from "../shared/settings/settings.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { defineExperiment } from "./experiment.ts";
import { cpuBetween, cpuByRole, type ServerProcess } from "./server-usage.ts";

type TrimReadsOptions = { readonly rooms: number; readonly editsPerRoom: number };
/** Seconds of CPU. */
type ReadCost = { readonly records: number; readonly natsServer: number; readonly reader: number };

/** A keystroke's record with its metadata. */
const RECORD_BYTES = 250;
const APPENDS_AT_ONCE = 1_000;
const PARTITION = 0;
const subjects = subjectsOf("bench");
const stream = subjects.logStream(PARTITION);
const subjectOf = (room: number): string => subjects.log(PARTITION, roomKey("bench" as TenantId, `room${room}` as RoomId));

async function measureTrimReads(options: TrimReadsOptions): Promise<{ readonly byRoom: ReadCost; readonly onePass: ReadCost }> {
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

export const trimReads = defineExperiment({
  name: "trim-reads",
  summary: "CPU to read the log for trimming, room by room and in one pass; half a minute",
  settings: {
    rooms: { parse: positiveInteger, fallback: 500, meaning: "rooms that write in turn into one partition of the log" },
    editsPerRoom: { parse: positiveInteger, fallback: 60, meaning: "edits of each room since its last trim" },
  },
  run: async (options, print) => {
    const { byRoom, onePass } = await measureTrimReads(options);
    const shown = ({ records, natsServer, reader }: ReadCost): string =>
      `${records} records, nats-server ${natsServer.toFixed(2)} s of CPU, reader ${reader.toFixed(2)} s`;
    print(`room by room  ${shown(byRoom)}`);
    print(`in one pass   ${shown(onePass)}`);
    print(`room by room takes ${((byRoom.natsServer + byRoom.reader) / (onePass.natsServer + onePass.reader)).toFixed(1)} times the CPU`);
  },
});
