/**
 * The rooms' log in JetStream. The log's end is read from the stream's leader, because a replica may be behind. A
 * deposed leader may be behind too, so no answer proves that no newer record exists. Older records may come from any
 * replica.
 */

import { JetStreamApiError, jetstreamManager, type MsgRequest, type NextMsgRequest, type StoredMsg } from "@nats-io/jetstream";

import { decodeRecord, type LogRecord } from "../../shared/bus/record.ts";
import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { advanceNumbers } from "../../shared/io/log-numbers.ts";
import { readLog } from "../../shared/io/log-reader.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause } from "../../shared/time/pause.ts";
import type { RoomLog } from "../ports.ts";
import { type AppendDeps, type AppendOptions, jetstreamAppend } from "./jetstream-append.ts";

const NO_MESSAGE_FOUND = 10_037;
/**
 * Maximum number of concurrent reads of a room's end. After a mass reconnect every room needs one, and JetStream drops
 * requests that do not fit its queue.
 */
const LOOKS_AT_ONCE = 64;

export async function jetstreamLog(
  nats: NatsConnection,
  subjects: Subjects,
  options: AppendOptions,
  deps: Omit<AppendDeps, "readLast" | "replicasOf" | "takesBatches">,
): Promise<RoomLog> {
  const manager = await jetstreamManager(nats);
  const placeOf = (room: RoomKey) => {
    const partition = partitionOf(room, options.partitions);
    return { stream: subjects.logStream(partition), subject: subjects.log(partition, room) };
  };
  const find = async (stream: string, question: MsgRequest | NextMsgRequest): Promise<StoredMsg | undefined> => {
    try {
      return (await manager.streams.getMessage(stream, question as MsgRequest)) ?? undefined; // The declared type omits a form that the server accepts.
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === NO_MESSAGE_FOUND) return undefined;
      throw error;
    }
  };
  const readLast: RoomLog["readLast"] = async (room) => {
    const { stream, subject } = placeOf(room);
    const message = await find(stream, { last_by_subj: subject });
    return message === undefined ? undefined : { record: decode(room, message.seq, message.data), streamSeq: message.seq };
  };
  const batched = new Set<number>();
  for (let partition = 0; partition < options.partitions; partition++) {
    const { config } = await manager.streams.info(subjects.logStream(partition));
    // One server without replicas syncs its disk for each batch, so single records are faster there (ADR 62).
    if (config.allow_atomic === true && config.num_replicas > 1) batched.add(partition);
  }
  return {
    append: jetstreamAppend(nats, subjects, options, {
      ...deps,
      readLast,
      takesBatches: (partition) => batched.has(partition),
      replicasOf: async (partition) => (await manager.streams.info(subjects.logStream(partition))).config.num_replicas,
    }),
    readLast,
    endsAt: limitConcurrency(LOOKS_AT_ONCE, async (room: RoomKey, streamSeq: number) => {
      const { stream, subject } = placeOf(room);
      return (await find(stream, { seq: streamSeq + 1, next_by_subj: subject })) === undefined;
    }),
    advance: (room, past) => advanceNumbers(nats, subjects, partitionOf(room, options.partitions), past),
    read: async function* (room, after, through) {
      const place = placeOf(room);
      for await (const { streamSeq, bytes } of wholeRange(
        (read) => readLog(nats, place, read, Number.MAX_SAFE_INTEGER),
        after,
        through,
        deps.clock,
      )) {
        const record = decode(room, streamSeq, bytes);
        if (record.kind !== "deleted") yield { record, streamSeq };
      }
    },
  };
}

/** Copies the bytes, because the network's buffer must not be kept. */
function decode(room: RoomKey, streamSeq: number, data: Uint8Array): LogRecord {
  const record = decodeRecord(new Uint8Array(data));
  if (record === undefined)
    throw new Error(
      `the log of room ${room} contains at sequence ${streamSeq} a message that is no record: a newer version may have written it. Run the same version everywhere.`,
    );
  return record;
}

/**
 * Reads a range of a room's log completely. Any replica of the stream may answer. A replica that is behind returns
 * fewer records, never different ones. The rest is then read again, or the read fails. An incomplete range would lose
 * the last edits of writers.
 */
const PAUSE_MS_MIN = 5;
/** Pauses between repeated reads, each twice as long as the previous: 1.3 s in total. */
const PAUSES_MAX = 8;

/**
 * The records in `after < streamSeq <= through`. `readOn`: reads all records that a replica returns after a record.
 * `through`: the log has that record, or a later one. Throws if no replica returns either.
 */
export async function* wholeRange<Stored extends { readonly streamSeq: number }>(
  readOn: (after: number) => AsyncIterable<Stored>,
  after: number,
  through: number,
  clock: Clock,
): AsyncIterable<Stored> {
  let read = after;
  for (let pauses = 0; read < through; pauses++) {
    for await (const stored of readOn(read)) {
      read = stored.streamSeq;
      if (read <= through) yield stored;
      if (read >= through) return;
    }
    if (pauses === PAUSES_MAX)
      throw new Error(
        `the log shows no record after ${read}, but had one at ${through} or later: a replica of its stream may be far behind. The read is repeated.`,
      );
    await pause(clock, PAUSE_MS_MIN * 2 ** pauses);
  }
}
