/**
 * Reads one partition of the log in order, for as long as one likes: all there is, then again after a rest. A
 * reader that was woken by each record would cost the machine as much as the edit itself, and readers who make
 * snapshots or count have time.
 */

import { jetstreamManager } from "@nats-io/jetstream";
import { setImmediate, setTimeout } from "node:timers/promises";

import type { StoredRecord } from "../bus/stored-record.ts";
import { roomOfSubject, type Subjects } from "../bus/subjects.ts";
import type { NatsConnection } from "./nats.ts";
import { type StoredMessage, storedIn } from "./stored-messages.ts";

export type Follow = (partition: number, after: number, signal: AbortSignal) => AsyncIterable<StoredRecord>;

const END_OF_BATCH = 204;
const NOTHING_THERE = 404;
const READ_RECORDS_MAX = 1_024;
/** Of one room: the server looks through all that stands between them, and who asks often wants few. */
const READ_OF_ROOM_FIRST = 64;
/** A record that is larger comes alone. */
const READ_BYTES_MAX = 1024 * 1024;
const READ_MS_MAX = 3_000;
/** Sockets and timers have their turn after so much reading at a stretch. */
const STRETCH_MS_MAX = 10;

/** Throws when the log does not answer: begin again after the last record received. */
export function followLog(nats: NatsConnection, subjects: Subjects, options: { readonly everyMs: () => number }): Promise<Follow> {
  // The one error it has is the signal's.
  return followStream(nats, subjects.logStream, (_, signal) => setTimeout(options.everyMs(), undefined, { signal }).catch(() => {}));
}

/** The same for any stream in partitions whose subjects end in a room. `rest`: for how long there is nothing to read on. */
export async function followStream(
  nats: NatsConnection,
  streamOf: (partition: number) => string,
  rest: (partition: number, signal: AbortSignal) => Promise<void>,
): Promise<Follow> {
  const manager = await jetstreamManager(nats);
  return async function* follow(partition, after, signal) {
    const stream = streamOf(partition);
    const { state } = await manager.streams.info(stream);
    if (state.last_seq < after) {
      throw new Error(
        `the log ${stream} ends at ${state.last_seq}, before ${after} which had been read: it was lost or rolled back; restore it, or remove the checkpoints with it`,
      );
    }
    for (let read = after; !signal.aborted;) {
      const { messages, more } = await readOn(nats, stream, read, { records: READ_RECORDS_MAX });
      let stretchEnd = performance.now() + STRETCH_MS_MAX;
      for (const message of messages) {
        if (signal.aborted) return;
        read = message.streamSeq;
        const record = recordOf(message);
        if (record !== undefined) yield record;
        if (performance.now() < stretchEnd) continue;
        await setImmediate();
        stretchEnd = performance.now() + STRETCH_MS_MAX;
      }
      if (!more) await rest(partition, signal);
    }
  };
}

/**
 * A stream's records in `after < streamSeq <= through`, or those of one subject, which is one room's, for as long as there
 * are more. Whoever needs to know that none is missing asks for one that is there, and looks whether it came.
 */
export async function* readLog(
  nats: NatsConnection,
  { stream, subject }: { readonly stream: string; readonly subject?: string | undefined },
  after: number,
  through: number,
): AsyncIterable<StoredRecord> {
  let read = after;
  for (let records = subject === undefined ? READ_RECORDS_MAX : READ_OF_ROOM_FIRST; ; records = Math.min(records * 2, READ_RECORDS_MAX)) {
    const { messages, more } = await readOn(nats, stream, read, { records, subject });
    for (const message of messages) {
      read = message.streamSeq;
      if (read > through) return;
      const record = recordOf(message);
      if (record !== undefined) yield record;
    }
    if (!more || read >= through) return;
  }
}

/**
 * The next records after a stream sequence. The server sends them and then a message without content. Any replica may
 * answer: one that lags shows less, never something else.
 */
async function readOn(
  nats: NatsConnection,
  stream: string,
  after: number,
  { records, subject }: { readonly records: number; readonly subject?: string | undefined },
): Promise<{ messages: StoredMessage[]; more: boolean }> {
  const request = JSON.stringify({ seq: after + 1, batch: records, max_bytes: READ_BYTES_MAX, next_by_subj: subject });
  const messages: StoredMessage[] = [];
  for await (const message of await nats.requestMany(`$JS.API.DIRECT.GET.${stream}`, request, {
    strategy: "sentinel",
    maxWait: READ_MS_MAX,
  })) {
    if (message.data.byteLength > 0) {
      messages.push(storedIn(message));
      continue;
    }
    const { code = 0, description = "" } = message.headers ?? {};
    if (code !== END_OF_BATCH && code !== NOTHING_THERE) throw new Error(`the log ${stream} cannot be read: ${code} ${description}`);
    return { messages, more: (messages.at(-1)?.pending ?? 0) > 0 };
  }
  throw new Error(`the log ${stream} did not say in ${READ_MS_MAX} ms what comes after ${after}: is NATS reachable?`);
}

/** Undefined: its subject is no room's. */
function recordOf({ subject, streamSeq, time, data }: StoredMessage): StoredRecord | undefined {
  const room = roomOfSubject(subject);
  return room === undefined ? undefined : { room, streamSeq, time, bytes: data };
}
