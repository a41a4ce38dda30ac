/**
 * Activities that are no edits, in JetStream beside the log. A stream holds what no checkpoint covers; full, it takes
 * no more, so that whoever tells hears of it and nothing told is lost. Its numbers begin with the date it is made at:
 * rooms know how far they have counted, so one made anew for one that was lost must not begin below that.
 */

import {
  DiscardPolicy,
  jetstreamManager,
  type JetStreamManager,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import { ensureCopies, onceSettled } from "../../shared/io/copies.ts";
import { followStream } from "../../shared/io/follow-log.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { ActivityRemoval, ActivityStream } from "../ports.ts";
import type { ReadingPace } from "../counting/reading-pace.ts";

export type ActivityStreamOptions = {
  readonly partitions: number;
  readonly replicas: number;
  readonly bytesMax: number;
  readonly dedupeMs: number;
};

const STREAM_NOT_FOUND = 10_059;
/** Another process has just made it, and at another moment: with another first number. */
const MADE_OTHERWISE = 10_058;
const NANOS_PER_MS = 1_000_000;
/** No stream ever takes so many: one made later begins behind all that an earlier one had. Until the year 2255 they are below 2^53. */
const NUMBERS_PER_MS = 1_000;

export async function jetstreamActivities(
  nats: NatsConnection,
  subjects: Subjects,
  paces: readonly ReadingPace[],
  options: ActivityStreamOptions,
): Promise<ActivityStream> {
  const manager = await jetstreamManager(nats);
  const ensure = (partition: number): Promise<void> => onceSettled(() => ensureStream(manager, subjects, partition, options));
  for (let partition = 0; partition < options.partitions; partition++) await ensure(partition);
  return {
    follow: await followStream(nats, subjects.activityStream, (partition, signal) => paces[partition]!.rest(signal)),
    end: async (partition) => (await manager.streams.info(subjects.activityStream(partition))).state.last_seq,
    last: async (partition) =>
      (await manager.streams.getMessage(subjects.activityStream(partition), { last_by_subj: subjects.activityOfPartition(partition) }))
        ?.seq ?? 0,
    readNow: (partition) => paces[partition]!.readNow(),
    forgotten: async (partition) => {
      await ensure(partition);
      return (await manager.streams.info(subjects.activityStream(partition))).state.first_seq - 1;
    },
    forget: async (partition, through) => {
      await manager.streams.purge(subjects.activityStream(partition), { seq: through + 1 });
    },
  };
}

export async function activityRemoval(nats: NatsConnection, subjects: Subjects, partitions: number): Promise<ActivityRemoval> {
  const manager = await jetstreamManager(nats);
  return {
    removeAll: async (room) => {
      const partition = partitionOf(room, partitions);
      await manager.streams.purge(subjects.activityStream(partition), { filter: subjects.activity(partition, room) });
    },
  };
}

/** What may be changed of a stream is set anew, so that settings are what holds. */
async function ensureStream(
  manager: JetStreamManager,
  subjects: Subjects,
  partition: number,
  { replicas, bytesMax, dedupeMs }: ActivityStreamOptions,
): Promise<void> {
  const name = subjects.activityStream(partition);
  const settings = { max_bytes: bytesMax, duplicate_window: dedupeMs * NANOS_PER_MS };
  try {
    await manager.streams.update(name, settings);
    await ensureCopies(manager, name, replicas);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
    await addStream(manager, subjects, partition, settings, replicas);
  }
}

async function addStream(
  manager: JetStreamManager,
  subjects: Subjects,
  partition: number,
  settings: Partial<StreamConfig>,
  replicas: number,
): Promise<void> {
  try {
    await manager.streams.add({
      ...settings,
      name: subjects.activityStream(partition),
      subjects: [subjects.activityOfPartition(partition)],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      num_replicas: replicas,
      allow_direct: true,
      first_seq: Date.now() * NUMBERS_PER_MS,
    });
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== MADE_OTHERWISE) throw error;
  }
}
