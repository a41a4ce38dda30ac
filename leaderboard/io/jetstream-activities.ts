/**
 * Activities that are no edits, in JetStream beside the log. A stream holds what no checkpoint covers; full, it takes
 * no more, so that whoever tells hears of it and nothing told is lost.
 */

import { DiscardPolicy, jetstreamManager, type JetStreamManager, JetStreamApiError, RetentionPolicy, StorageType } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import { ensureCopies, onceSettled } from "../../shared/io/copies.ts";
import { followStream } from "../../shared/io/follow-log.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { ActivityStream } from "../ports.ts";
import type { ReadingPace } from "../reading-pace.ts";

export type ActivityStreamOptions = { readonly partitions: number; readonly replicas: number; readonly bytesMax: number; readonly dedupeMs: number };

const STREAM_NOT_FOUND = 10_059;
const NANOS_PER_MS = 1_000_000;

export async function jetstreamActivities(nats: NatsConnection, subjects: Subjects, paces: readonly ReadingPace[], options: ActivityStreamOptions): Promise<ActivityStream> {
  const manager = await jetstreamManager(nats);
  for (let partition = 0; partition < options.partitions; partition++) await onceSettled(() => ensureStream(manager, subjects, partition, options));
  return {
    follow: await followStream(nats, subjects.activityStream, (partition, signal) => paces[partition]!.rest(signal)),
    end: async (partition) => (await manager.streams.info(subjects.activityStream(partition))).state.last_seq,
    readNow: (partition) => paces[partition]!.readNow(),
    forgotten: async (partition) => Math.max(0, (await manager.streams.info(subjects.activityStream(partition))).state.first_seq - 1),
    forget: async (partition, through) => {
      await manager.streams.purge(subjects.activityStream(partition), { seq: through + 1 });
    },
  };
}

/** What may be changed of a stream is set anew, so that settings are what holds. */
async function ensureStream(manager: JetStreamManager, subjects: Subjects, partition: number, { replicas, bytesMax, dedupeMs }: ActivityStreamOptions): Promise<void> {
  const name = subjects.activityStream(partition);
  const settings = { max_bytes: bytesMax, duplicate_window: dedupeMs * NANOS_PER_MS };
  try {
    await manager.streams.update(name, settings);
    await ensureCopies(manager, name, replicas);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
    await manager.streams.add({
      ...settings,
      name,
      subjects: [subjects.activityOfPartition(partition)],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      num_replicas: replicas,
      allow_direct: true,
    });
  }
}
