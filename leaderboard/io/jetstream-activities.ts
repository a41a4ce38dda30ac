/**
 * Activities other than edits, in JetStream in addition to the log. The stream contains the activities that no
 * checkpoint covers. A full stream rejects new activities, so their senders receive an error and no accepted activity
 * is lost. The first sequence of a stream is derived from its creation date. So a stream that replaces a lost one
 * begins above all sequences that rooms have counted.
 */

import {
  DiscardPolicy,
  JetStreamApiError,
  jetstreamManager,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import { ensureReplicas, isStreamMissing, retryUntilSettled } from "../../shared/io/jetstream-stores.ts";
import { followLog, followStream } from "../../shared/io/log-reader.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { ActivityRemoval, ActivityStream, CountedEditLog } from "../ports.ts";

type ActivityStreamOptions = {
  readonly partitions: number;
  readonly replicas: number;
  readonly bytesMax: number;
  readonly dedupeMs: number;
};

/** Another process has just created the stream, with another first sequence. */
const MADE_OTHERWISE = 10_058;
const NANOS_PER_MS = 1_000_000;
/**
 * The first sequences of two streams differ by this number per millisecond between their creation. A stream stores
 * fewer entries per millisecond, so a stream that is created later begins above all sequences of an earlier one. The
 * numbers stay below 2^53 until the year 2255.
 */
const NUMBERS_PER_MS = 1_000;

export async function jetstreamActivities(
  nats: NatsConnection,
  subjects: Subjects,
  intervals: readonly ReadingInterval[],
  options: ActivityStreamOptions,
): Promise<ActivityStream> {
  const manager = await jetstreamManager(nats);
  const ensure = (partition: number): Promise<void> => retryUntilSettled(() => ensureStream(manager, subjects, partition, options));
  for (let partition = 0; partition < options.partitions; partition++) await ensure(partition);
  return {
    follow: await followStream(nats, subjects.activityStream, (partition, signal) => intervals[partition]!.rest(signal)),
    end: async (partition) => (await manager.streams.info(subjects.activityStream(partition))).state.last_seq,
    last: async (partition) =>
      (await manager.streams.getMessage(subjects.activityStream(partition), { last_by_subj: subjects.activityOfPartition(partition) }))
        ?.seq ?? 0,
    readNow: (partition) => intervals[partition]!.readNow(),
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

/** Applies the current settings to an existing stream, where JetStream allows a change. */
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
    await ensureReplicas(manager, name, replicas);
  } catch (error) {
    if (!isStreamMissing(error)) throw error;
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

/** The log in JetStream, as the leaderboard reads it. `intervals`: one for each partition. */
export async function jetstreamLog(
  nats: NatsConnection,
  subjects: Subjects,
  intervals: readonly ReadingInterval[],
): Promise<CountedEditLog> {
  const manager = await jetstreamManager(nats);
  return {
    follow: await followLog(nats, subjects, (partition, signal) => intervals[partition]!.rest(signal)),
    end: async (partition) => (await manager.streams.info(subjects.logStream(partition))).state.last_seq,
    readNow: (partition) => intervals[partition]!.readNow(),
  };
}

type ReadingIntervalOptions = {
  readonly restMs: () => number;
  /** The shortest wait, so that one read answers many requests. */
  readonly restMsMin: number;
  readonly waitMsMax: number;
};

export const SHORT_READ_WAITS = { restMsMin: 2, waitMsMax: 50 } as const;

/**
 * The wait between two reads of a stream. A request ends the wait early. A request is answered after the delivery of a
 * read that began after the request.
 */
export class ReadingInterval {
  readonly #clock: Clock;
  readonly #options: ReadingIntervalOptions;
  /** Waiters that the current read answers, and waiters of the next read. A waiter whose time is over is removed. */
  #current = new Set<() => void>();
  #next = new Set<() => void>();
  #wake: () => void = () => {};

  constructor(clock: Clock, options: ReadingIntervalOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Called by the reader when it has delivered everything that it read. Resolves when it has to read again. */
  rest(signal: AbortSignal): Promise<void> {
    for (const met of this.#current) met();
    this.#current = new Set();
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        callOff();
        this.#wake = () => {};
        [this.#current, this.#next] = [this.#next, new Set()];
        resolve();
      };
      let callOff = this.#clock.after(this.#options.restMs(), wake);
      const hurry = (): void => {
        callOff();
        callOff = this.#clock.after(this.#options.restMsMin, wake);
      };
      this.#wake = hurry;
      if (this.#next.size > 0) hurry();
      signal.addEventListener("abort", wake);
    });
  }

  /** Resolves once everything that the stream contains now was read and delivered, or after `waitMsMax`. */
  readNow(): Promise<void> {
    return new Promise((resolve) => {
      const callOff = this.#clock.after(this.#options.waitMsMax, () => {
        for (const waiting of [this.#current, this.#next]) waiting.delete(met);
        resolve();
      });
      const met = (): void => {
        callOff();
        resolve();
      };
      this.#next.add(met);
      if (this.#next.size === 1) this.#wake();
    });
  }
}
