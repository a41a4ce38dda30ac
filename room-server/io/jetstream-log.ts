/** The rooms' log in JetStream. Reads go to the stream's leader: a replica might lag behind an append. */

import { AckPolicy, type Consumer, DeliverPolicy, jetstream, JetStreamApiError, type JetStreamClient, type JetStreamManager, jetstreamManager, type MsgRequest, type NextMsgRequest, type StoredMsg } from "@nats-io/jetstream";

import { decodeRecord, type LogRecord } from "../../shared/bus/record.ts";
import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { RoomLog, StoredRecord } from "../ports.ts";
import { type AppendDeps, type AppendOptions, jetstreamAppend } from "./jetstream-append.ts";

const NO_MESSAGE_FOUND = 10_037;
const MESSAGES_PER_FETCH = 256;
const FETCH_MS_MAX = 3_000;
const INACTIVE_NANOS = 10_000_000_000;

export async function jetstreamLog(nats: NatsConnection, subjects: Subjects, options: AppendOptions, deps: Omit<AppendDeps, "readLast">): Promise<RoomLog> {
  const manager = await jetstreamManager(nats);
  const client = jetstream(nats);
  const placeOf = (room: RoomKey) => {
    const partition = partitionOf(room, options.partitions);
    return { stream: subjects.logStream(partition), subject: subjects.log(partition, room) };
  };
  const find = async (stream: string, question: MsgRequest | NextMsgRequest): Promise<StoredMsg | undefined> => {
    try {
      return (await manager.streams.getMessage(stream, question as MsgRequest)) ?? undefined; // Its type leaves out what the server takes as well.
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
  return {
    append: jetstreamAppend(nats, subjects, options, { ...deps, readLast }),
    readLast,
    endsAt: async (room, streamSeq) => {
      const { stream, subject } = placeOf(room);
      return (await find(stream, { seq: streamSeq + 1, next_by_subj: subject })) === undefined;
    },
    read: (room, after, through) => readRange(manager, client, placeOf(room), room, after, through),
  };
}

/** Through a consumer of its own, which is gone afterwards. */
async function* readRange(manager: JetStreamManager, client: JetStreamClient, { stream, subject }: { stream: string; subject: string }, room: RoomKey, after: number, through: number): AsyncIterable<StoredRecord> {
  const { name, num_pending: pending } = await manager.consumers.add(stream, {
    filter_subject: subject,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: after + 1,
    ack_policy: AckPolicy.None,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: INACTIVE_NANOS,
  });
  try {
    yield* fetchAll(await client.consumers.get(stream, name), room, pending, through);
  } finally {
    await manager.consumers.delete(stream, name).catch(() => {}); // It goes by itself when it is not used.
  }
}

async function* fetchAll(consumer: Consumer, room: RoomKey, pending: number, through: number): AsyncIterable<StoredRecord> {
  for (let left = pending; left > 0; ) {
    const before = left;
    for await (const message of await consumer.fetch({ max_messages: Math.min(left, MESSAGES_PER_FETCH), expires: FETCH_MS_MAX })) {
      left -= 1;
      if (message.seq > through) return;
      const record = decode(room, message.seq, message.data);
      if (record.kind !== "deleted") yield { record, streamSeq: message.seq };
      if (message.seq === through) return;
    }
    if (left === before) throw new Error(`the log of room ${room} stopped answering with ${left} records to read`);
  }
}

/** Copied: the network's buffer is not for keeping. */
function decode(room: RoomKey, streamSeq: number, data: Uint8Array): LogRecord {
  const record = decodeRecord(new Uint8Array(data));
  if (record === undefined) throw new Error(`the log of room ${room} holds at ${streamSeq} something that is no record: was it written by a newer version?`);
  return record;
}
