/**
 * Reads one log partition in order: all records, then again after a pause. Waking a reader for each record would cost
 * as much as the edit itself, and readers that make snapshots or count can wait.
 */

import { jetstreamManager, DirectMsgHeaders as Header } from "@nats-io/jetstream";
import { setImmediate, setTimeout } from "node:timers/promises";
import { roomOfSubject, type Subjects } from "../bus/subjects.ts";
import type { NatsConnection, Msg } from "./nats.ts";
import type { ReadPosition, StoredRecord } from "../bus/record.ts";
import type { UnixMillis } from "../ids.ts";
import { followRecords, type LogReads } from "./log-follower.ts";

export type FollowPartition<From = ReadPosition> = (partition: number, from: From, signal: AbortSignal) => AsyncIterable<StoredRecord>;
/** Resolves when reading continues, or the signal aborts. */
type Rest = (partition: number, signal: AbortSignal) => Promise<void>;

const END_OF_BATCH = 204;
const NOTHING_THERE = 404;
const READ_RECORDS_MAX = 1_024;
/** Batch size for one room. Small, because the server scans all records in between, and frequent readers need few. */
const READ_OF_ROOM_FIRST = 64;
/** Maximum bytes of a batch. A larger record is sent alone. */
const READ_BYTES_MAX = 1024 * 1024;
const READ_MS_MAX = 3_000;
/** After this much continuous reading, sockets and timers run. */
const STRETCH_MS_MAX = 10;

/** Throws when the log does not answer: start again after the last record received. Also throws `LogEndLost` (log-follower.ts). */
export function followLog(nats: NatsConnection, subjects: Subjects, rest: Rest): Promise<FollowPartition> {
  return followStreams(nats, subjects.logStream, rest, { areRecords: true });
}

/** Rests for the same time after each read. */
export function restFor(ms: number): Rest {
  return (_, signal) => setTimeout(ms, undefined, { signal }).catch(() => {}); // The only possible error is that of the signal.
}

/** For a partitioned stream of other messages, whose subjects end with a room. Their places are not verified. */
export async function followStream(
  nats: NatsConnection,
  streamOf: (partition: number) => string,
  rest: Rest,
): Promise<FollowPartition<number>> {
  const follow = await followStreams(nats, streamOf, rest, { areRecords: false });
  return (partition, after, signal) => follow(partition, { after }, signal);
}

async function followStreams(
  nats: NatsConnection,
  streamOf: (partition: number) => string,
  rest: Rest,
  { areRecords }: { areRecords: boolean },
): Promise<FollowPartition> {
  const manager = await jetstreamManager(nats);
  return (partition, from, signal) => {
    const stream = streamOf(partition);
    let stretchEnd = 0;
    const reads: LogReads = {
      name: stream,
      areRecords,
      read: async (after) => {
        const { messages, more } = await readOn(nats, stream, after, { records: READ_RECORDS_MAX });
        stretchEnd = performance.now() + STRETCH_MS_MAX;
        const records = messages.flatMap((message) => recordOf(message) ?? []);
        return { records, through: messages.at(-1)?.streamSeq ?? after, isMore: more };
      },
      end: async () => (await manager.streams.info(stream)).state.last_seq,
      rest: () => rest(partition, signal),
      yieldTime: () => {
        if (performance.now() < stretchEnd) return undefined;
        return setImmediate().then(() => void (stretchEnd = performance.now() + STRETCH_MS_MAX));
      },
      now: () => performance.now(),
    };
    return followRecords(reads, from, signal);
  };
}

/**
 * A stream's records in `after < streamSeq <= through`, or those of one room's subject. To be sure that none is
 * missing, ask through an existing record and check that it came.
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
 * The next records after a stream sequence, followed by an empty message. Any replica may answer: a stale one returns
 * fewer records, never different ones.
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
    const { data } = message; // A new view with each access.
    if (data.byteLength > 0) {
      messages.push(readStoredMessage(message, data));
      continue;
    }
    const { code = 0, description = "" } = message.headers ?? {};
    if (code !== END_OF_BATCH && code !== NOTHING_THERE) throw new Error(`the log ${stream} cannot be read: ${code} ${description}`);
    return { messages, more: (messages.at(-1)?.pending ?? 0) > 0 };
  }
  throw new Error(
    `the log ${stream} did not answer a read after sequence ${after} within ${READ_MS_MAX} ms. Check that NATS is reachable.`,
  );
}

/** Undefined: the subject is not a room's. */
function recordOf({ subject, streamSeq, time, data }: StoredMessage): StoredRecord | undefined {
  const room = roomOfSubject(subject);
  return room === undefined ? undefined : { room, streamSeq, time, bytes: data };
}

/**
 * A record from a JetStream direct get, with its position from the headers. `pending`: the number of requested records
 * that follow this one.
 */
type StoredMessage = {
  readonly subject: string;
  readonly streamSeq: number;
  readonly time: UnixMillis;
  readonly pending: number;
  readonly data: Uint8Array;
};

const HEADERS_BYTES_MAX = 512;
const HEADERS_START = Buffer.from("NATS/1.0\r\n");

/**
 * Parses the headers from the bytes before the data, because this runs for every record and the client's header object
 * takes four times as long. If they are not found there, that object is used.
 */
export function readStoredMessage(message: Pick<Msg, "headers">, data: Uint8Array): StoredMessage {
  const text = headersBefore(data);
  const header = (name: string): string => (text === undefined ? (message.headers?.get(name) ?? "") : headerIn(text, name));
  return {
    subject: header(Header.Subject),
    streamSeq: Number(header(Header.Sequence)),
    time: Date.parse(header(Header.TimeStamp)) as UnixMillis,
    pending: Number(header(Header.NumPending)),
    data,
  };
}

/** A message arrives in one piece, of which the client returns views. Header values contain no line end. */
function headersBefore({ buffer, byteOffset }: Uint8Array): string | undefined {
  const length = Math.min(byteOffset, HEADERS_BYTES_MAX);
  const before = Buffer.from(buffer, byteOffset - length, length);
  const start = before.lastIndexOf(HEADERS_START);
  const text = start < 0 ? "" : before.toString("latin1", start);
  return text.endsWith("\r\n\r\n") ? text : undefined;
}

/** Empty if the message has no such header. */
function headerIn(text: string, name: string): string {
  const line = text.indexOf(`\r\n${name}: `);
  if (line < 0) return "";
  const value = line + name.length + 4;
  return text.slice(value, text.indexOf("\r\n", value));
}
