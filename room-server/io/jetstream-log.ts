/**
 * The rooms' log in JetStream. Where it ends is asked of the stream's leader: a replica might lag behind an append. So may
 * one that has another beside it: no answer is proof that nothing came since. What stands before that may come from any.
 */

import { JetStreamApiError, jetstreamManager, type MsgRequest, type NextMsgRequest, type StoredMsg } from "@nats-io/jetstream";

import { decodeRecord, type LogRecord } from "../../shared/bus/record.ts";
import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { inTurn } from "../../shared/in-turn.ts";
import { readLog } from "../../shared/io/follow-log.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { RoomLog } from "../ports.ts";
import { type AppendDeps, type AppendOptions, jetstreamAppend } from "./jetstream-append.ts";
import { wholeRange } from "./whole-range.ts";

const NO_MESSAGE_FOUND = 10_037;
/** Looks behind a room's end at a time: after a crowd came back every room wants one, and JetStream drops what does not fit its queue. */
const LOOKS_AT_ONCE = 64;

export async function jetstreamLog(
  nats: NatsConnection,
  subjects: Subjects,
  options: AppendOptions,
  deps: Omit<AppendDeps, "readLast">,
): Promise<RoomLog> {
  const manager = await jetstreamManager(nats);
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
    endsAt: inTurn(LOOKS_AT_ONCE, async (room: RoomKey, streamSeq: number) => {
      const { stream, subject } = placeOf(room);
      return (await find(stream, { seq: streamSeq + 1, next_by_subj: subject })) === undefined;
    }),
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

/** Copied: the network's buffer is not for keeping. */
function decode(room: RoomKey, streamSeq: number, data: Uint8Array): LogRecord {
  const record = decodeRecord(new Uint8Array(data));
  if (record === undefined)
    throw new Error(`the log of room ${room} holds at ${streamSeq} something that is no record: was it written by a newer version?`);
  return record;
}
