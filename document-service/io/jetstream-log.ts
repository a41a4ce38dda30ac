/**
 * The log in JetStream: reads partitions in order, reads the end of a room's log, trims, and appends deletions. It asks on
 * NATS whether a deleted room still has an owner.
 */

import { randomUUID } from "node:crypto";

import { jetstreamManager, type JetStreamClient } from "@nats-io/jetstream";
import { errors } from "nats";

import { encodeToOwner } from "../../shared/bus/envelope.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import { decodeRecord, headOf, encodeDeletedRecord } from "../../shared/bus/record.ts";
import { partitionOf, roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import { type RoomId, type RoomKey, roomOf, type UnixMillis } from "../../shared/ids.ts";
import { followLog, readLog, restFor } from "../../shared/io/log-reader.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { EditLog, Deletions, RoomNames } from "../ports.ts";

export async function jetstreamLog(
  nats: NatsConnection,
  subjects: Subjects,
  options: { partitions: number; readMs: number; answerMsMax: number },
): Promise<EditLog> {
  const manager = await jetstreamManager(nats, { timeout: options.answerMsMax });
  const placeOf = (room: RoomKey) => {
    const partition = partitionOf(room, options.partitions);
    return { stream: subjects.logStream(partition), subject: subjects.log(partition, room) };
  };

  return {
    follow: await followLog(nats, subjects, restFor(options.readMs)),
    end: async (room) => {
      const { stream, subject } = placeOf(room);
      const message = await manager.streams.getMessage(stream, { last_by_subj: subject });
      if (message === null) return { kind: "empty" };
      const record = decodeRecord(message.data);
      if (record === undefined) {
        throw new UndecodableEntry(`the log of room ${room} does not end in a record: check whether a newer version wrote it`);
      }
      return record.kind === "deleted" ? { kind: "deleted", streamSeq: message.seq } : { kind: "at", seq: headOf(record) };
    },
    untrimmed: async (partition) => {
      const { state } = await manager.streams.info(subjects.logStream(partition), { subjects_filter: subjects.logOfPartition(partition) });
      return Object.entries(state.subjects ?? {}).flatMap(([subject, records]) => (records > 1 ? (roomOfSubject(subject) ?? []) : []));
    },
    read: (room, after, through) => readLog(nats, placeOf(room), after, through),
    readAll: (partition, after, through) => readLog(nats, { stream: subjects.logStream(partition) }, after, through),
    at: async (room, streamSeq) => {
      const { stream, subject } = placeOf(room);
      const message = await manager.streams.getMessage(stream, { seq: streamSeq });
      if (message?.subject !== subject) return undefined;
      return { room, streamSeq, time: Date.parse(message.timestamp) as UnixMillis, bytes: message.data };
    },
    trim: async (room, before) => {
      const { stream, subject } = placeOf(room);
      await manager.streams.purge(stream, { filter: subject, seq: before });
    },
  };
}

/** nats-server counts the subjects of one tenant, and returns at most 100,000 in one answer; the library reads all of them. */
export async function jetstreamRoomNames(
  nats: NatsConnection,
  subjects: Subjects,
  { partitions, answerMsMax }: { partitions: number; answerMsMax: number },
): Promise<RoomNames> {
  const manager = await jetstreamManager(nats, { timeout: answerMsMax });
  return {
    roomsOf: async (tenant) => {
      const found = await Promise.all(
        Array.from({ length: partitions }, (_, partition) =>
          manager.streams.info(subjects.logStream(partition), { subjects_filter: subjects.logOfTenant(partition, tenant) }),
        ),
      );
      return found.flatMap(({ state }) => Object.keys(state.subjects ?? {}).flatMap((subject) => roomIn(subject) ?? []));
    },
  };
}

function roomIn(subject: string): RoomId | undefined {
  const room = roomOfSubject(subject);
  return room && roomOf(room);
}

/** An owner sends no reply. It reads its log, and has released the room by the next request. */
const OWNER_MS_MAX = 300;

export function jetstreamDeletions(
  nats: NatsConnection,
  jetstream: JetStreamClient,
  subjects: Subjects,
  { partitions }: { partitions: number },
  clock: Pick<Clock, "wallNow">,
): Deletions {
  return {
    append: async (room) => {
      const id = `deletion.${randomUUID()}`;
      const { seq } = await jetstream.publish(
        subjects.log(partitionOf(room, partitions), room),
        encodeDeletedRecord({ id, time: clock.wallNow() }),
        { msgID: id },
      );
      return seq;
    },
    notifyOwner: async (room) => {
      try {
        await nats.request(subjects.toOwner(room), encodeToOwner({ kind: "check-ownership" }), { timeout: OWNER_MS_MAX });
      } catch (error) {
        if (isWithoutResponder(error)) return "nobody"; // On any other error an owner may exist.
      }
      return "somebody";
    },
  };
}

function isWithoutResponder(error: unknown): boolean {
  return error instanceof errors.NoRespondersError || (error instanceof errors.RequestError && error.isNoResponders());
}
