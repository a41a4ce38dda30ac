/** How the simulated document services and leaderboards reach KV buckets and the log over their connections. */

import type { ReadPosition, StoredRecord } from "../../shared/bus/record.ts";
import type { Lease, Leases } from "../../shared/cluster/lease.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { EntryWrite } from "../../shared/io/jetstream-stores.ts";
import { followRecords, type LogReads } from "../../shared/io/log-follower.ts";
import { pause } from "../../shared/time/pause.ts";
import type { SimBucket } from "./sim-bucket.ts";
import type { SimJetStream } from "./sim-jetstream.ts";
import type { SimNatsConnection } from "./sim-nats-connection.ts";

type Entry<Value> = { readonly entry: Value | undefined; readonly revision: number };
type SimValues<Value> = {
  read(room: RoomKey): Promise<Entry<Value>>;
  write(room: RoomKey, value: Value, revision: number): Promise<EntryWrite>;
};

const RECORDS_PER_READ = 64;

/** As `replaceEntry` of `shared/io/jetstream-stores.ts`. `read`: where a former leader may answer. */
export function kvValuesOf<Value>(
  connection: SimNatsConnection,
  bucket: SimBucket<Value>,
  {
    takesWrites,
    read = (room) =>
      connection.ask(
        () => bucket.read(room),
        () => bucket.answers(),
      ),
  }: { takesWrites: () => boolean; read?: (room: RoomKey) => Promise<Entry<Value>> },
): SimValues<Value> {
  return {
    read,
    write: async (room, value, revision) => {
      const written = await connection.ask(
        () => (bucket.write(room, value, revision) ? bucket.read(room).revision : undefined),
        () => bucket.answers() && takesWrites(),
      );
      if (written !== undefined) return { kind: "written", revision: written };
      const found = await read(room);
      const isReplaced = found.revision > revision;
      const isOurs = isReplaced && JSON.stringify(found.entry) === JSON.stringify(value);
      return isOurs ? { kind: "written", revision: found.revision } : { kind: "superseded", isReplaced };
    },
  };
}

/** As `shared/io/kv-leases.ts`. */
export function kvLeasesOf(connection: SimNatsConnection, bucket: SimBucket<Lease>, takesWrites: () => boolean): Leases {
  const keyOf = (partition: number): RoomKey => `partition.${partition}` as RoomKey;
  const values = kvValuesOf(connection, bucket, { takesWrites });
  const read: Leases["read"] = async (partition) => {
    const { entry, revision } = await values.read(keyOf(partition));
    return { lease: entry, revision };
  };
  return {
    read,
    write: async (partition, lease, revision) => {
      const outcome = await values.write(keyOf(partition), lease, revision);
      if (outcome.kind === "written") return outcome;
      const found = await read(partition);
      return found.lease?.holder === lease.holder ? { kind: "written", revision: found.revision } : outcome;
    },
  };
}

/** As `followLog` of `shared/io/log-reader.ts`, over the simulated log. */
export function followLogOf(
  {
    jetstream,
    readFrom,
    clock,
    restMs,
  }: {
    readonly jetstream: SimJetStream;
    readonly readFrom: <Answer>(run: (asOf: number) => Answer) => Promise<Answer>;
    readonly clock: Clock;
    readonly restMs: number;
  },
  from: ReadPosition,
  signal: AbortSignal,
): AsyncIterable<StoredRecord> {
  const reads: LogReads = {
    name: "sim_log_0",
    areRecords: true,
    read: async (after) => {
      const records = await readFrom((asOf) => jetstream.readAll(after, RECORDS_PER_READ, asOf));
      return { records, through: records.at(-1)?.streamSeq ?? after, isMore: records.length === RECORDS_PER_READ };
    },
    end: () => readFrom((asOf) => jetstream.lastSeq(asOf)),
    rest: () => pause(clock, restMs, signal),
    now: () => clock.now(),
  };
  return followRecords(reads, from, signal);
}
