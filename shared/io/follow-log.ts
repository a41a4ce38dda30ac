/** Reads one partition of the log in order, for as long as one likes. */

import { DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream";

import type { StoredRecord } from "../bus/stored-record.ts";
import { roomOfSubject, type Subjects } from "../bus/subjects.ts";
import type { Millis } from "../ids.ts";

export type Follow = (partition: number, after: number, signal: AbortSignal) => AsyncIterable<StoredRecord>;

/** At least the largest record, or the server would not send it. */
const AHEAD_BYTES_MAX = 16 * 1024 * 1024;
const IDLE_HEARTBEAT_MS = 1_000;
const PULL_MS_MAX = 5_000;
/** Sockets and timers have their turn after so much reading at a stretch. */
const STRETCH_MS_MAX = 10;

/** Throws when the log does not answer: begin again after the last record received. */
export async function followLog(streams: JetStreamClient, subjects: Subjects): Promise<Follow> {
  const manager = await streams.jetstreamManager();
  return async function* follow(partition, after, signal) {
    const stream = subjects.logStream(partition);
    const { state } = await manager.streams.info(stream);
    if (state.last_seq < after) {
      throw new Error(`the log ${stream} ends at ${state.last_seq}, before ${after} which had been read: it was lost or rolled back; restore it, or remove the checkpoints with it`);
    }
    const consumer = await streams.consumers.get(stream, { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after + 1 });
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
  };
}
