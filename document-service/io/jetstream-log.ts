/** The log in JetStream: read in order by partition, asked for a room's head, trimmed. */

import { DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream";

import { decodeRecord, headOf } from "../../shared/bus/record.ts";
import { partitionOf, roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import type { Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { EditLog, StoredRecord } from "../ports.ts";

/** At least the largest record, or the server would not send it. */
const AHEAD_BYTES_MAX = 16 * 1024 * 1024;
const IDLE_HEARTBEAT_MS = 1_000;
const PULL_MS_MAX = 5_000;
/** Sockets and timers have their turn after so much reading at a stretch. */
const STRETCH_MS_MAX = 10;

export async function jetstreamLog(jetstream: JetStreamClient, subjects: Subjects, options: { partitions: number }): Promise<EditLog> {
  const manager = await jetstream.jetstreamManager();
  const placeOf = (room: RoomKey) => {
    const partition = partitionOf(room, options.partitions);
    return { stream: subjects.logStream(partition), subject: subjects.log(partition, room) };
  };

  async function* follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord> {
    const stream = subjects.logStream(partition);
    const { state } = await manager.streams.info(stream);
    if (state.last_seq < after) {
      throw new Error(`the log ${stream} ends at ${state.last_seq}, before ${after} which had been read: it was lost or rolled back; restore it, or remove the checkpoints with it`);
    }
    const consumer = await jetstream.consumers.get(stream, { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after + 1 });
    const messages = await consumer.consume({ max_bytes: AHEAD_BYTES_MAX, idle_heartbeat: IDLE_HEARTBEAT_MS, expires: PULL_MS_MAX });
    const end = () => messages.stop();
    signal.addEventListener("abort", end);
    if (signal.aborted) end(); // While we were asking.
    try {
      let stretchEnd = performance.now() + STRETCH_MS_MAX;
      for await (const message of messages) {
        const room = roomOfSubject(message.subject);
        if (signal.aborted) return;
        if (room !== undefined) yield { room, streamSeq: message.seq, time: message.time.getTime() as Millis, bytes: message.data };
        if (performance.now() < stretchEnd) continue;
        await new Promise(setImmediate);
        stretchEnd = performance.now() + STRETCH_MS_MAX;
      }
    } finally {
      signal.removeEventListener("abort", end);
      messages.stop();
      void consumer.delete().catch(() => {}); // It goes by itself when nobody reads.
    }
  }

  return {
    follow,
    head: async (room) => {
      const { stream, subject } = placeOf(room);
      const message = await manager.streams.getMessage(stream, { last_by_subj: subject });
      if (message === null) return 0 as Seq;
      const record = decodeRecord(message.data);
      if (record === undefined) throw new Error(`the log of room ${room} ends in something that is no record: was it written by a newer version?`);
      return headOf(record);
    },
    untrimmed: async (partition) => {
      const { state } = await manager.streams.info(subjects.logStream(partition), { subjects_filter: subjects.logOfPartition(partition) });
      return Object.entries(state.subjects ?? {}).flatMap(([subject, records]) => (records > 1 ? (roomOfSubject(subject) ?? []) : []));
    },
    trim: async (room, before) => {
      const { stream, subject } = placeOf(room);
      await manager.streams.purge(stream, { filter: subject, seq: before });
    },
  };
}
