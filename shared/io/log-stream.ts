/**
 * Creates the missing streams of the log. Room servers and document services call this at their start, so the order of
 * starts does not matter. Leaderboards and gateways may only read, and wait for the streams. Streams have no age limit:
 * only the document service removes records, and only those that a snapshot covers.
 * A stream at its size limit refuses records, and never removes one to store another.
 *
 * The first stream stores the number of partitions. A process with another number would look for a room's records in
 * the wrong place, and two owners of one room would not fence each other. It also stores the bus version of the newest
 * release that wrote to it, so a backup of the log includes it.
 */

import {
  DiscardPolicy,
  jetstreamManager,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";

import { type BusRelease, LogBus, raisedLogBus, refusalOfLog } from "../bus/bus-version.ts";
import { decodeJson } from "../bus/json-messages.ts";
import { type LogPartitions, parseLogPartitions, refusalOfPartitions, writeLogPartitions } from "../bus/log-partitions.ts";
import type { Subjects } from "../bus/subjects.ts";
import { StartError } from "../process/lifecycle.ts";
import { SettingError } from "../settings/settings.ts";
import { ensureReplicas, findStream, isStorageFull, retryUntilSettled } from "./jetstream-stores.ts";
import { isForbidden, type NatsConnection } from "./nats.ts";
import { thisRelease } from "./version.ts";

const STREAM_EXISTS_OTHERWISE = 10_058;
const DUPLICATE_WINDOW_NANOS = 120_000_000_000;
/** In the first stream's metadata: `LogPartitions` as text. */
const PARTITIONS = "coroom.partitions";
/** In the first stream's metadata, as JSON: a `LogBus`. */
const BUS = "coroom.bus";
/** In the first stream's metadata while a process searches for the automatic limit. The next start repeats a search that a kill ended. */
const SEARCHING = "coroom.limit-search";

/** `bytesMax`: of all streams together; 0: `AUTOMATIC_BYTES_MAX`, or a part of the storage. Undefined: limits stay as they are. */
type LogOptions = { readonly partitions: number; readonly replicas: number; readonly bytesMax?: number };

/** Automatic limits are a power of two in this range, and at most half of the storage that nats-server can reserve. */
const AUTOMATIC_BYTES_MAX = 32 * 1024 ** 3;
const AUTOMATIC_BYTES_MIN = 16 * 1024 ** 2;

/**
 * `replicas`: 1, 3 or 5. Rooms are spread over the `partitions` by hash, so only `coroom split-log` changes their number.
 * Throws a SettingError if the log has another number of partitions.
 */
export function ensureLogStreams(nats: NatsConnection, subjects: Subjects, options: LogOptions): Promise<void> {
  return retryUntilSettled(() => makeLogStreams(nats, subjects, options));
}

/**
 * For every process at its start. Creates nothing. Throws a SettingError if the log states another number of
 * partitions. Returns whether the log states a number; false also if the log does not exist yet.
 */
export function checkLogPartitions(nats: NatsConnection, subjects: Subjects, partitions: number): Promise<boolean> {
  return retryUntilSettled(async () => {
    const first = await configOf(await jetstreamManager(nats), subjects.logStream(0));
    return first !== undefined && refuseOtherPartitionCount(first, partitions);
  });
}

/**
 * For a tier that only reads the log: waits until another process has created all its streams. Throws a SettingError if
 * the log states another number of partitions, and a StartError if no process creates the log.
 */
export function awaitLogStreams(nats: NatsConnection, subjects: Subjects, partitions: number): Promise<void> {
  return retryUntilSettled(async () => {
    const { streams } = await jetstreamManager(nats);
    for (let partition = 0; partition < partitions; partition++) {
      const { config } = await streams.info(subjects.logStream(partition));
      if (partition === 0) refuseOtherPartitionCount(config, partitions);
    }
  });
}

/**
 * Throws a StartError if the log was written by releases that this one cannot work with. Call it before a process writes:
 * `ensureLogStreams` stores the version of this release. A log that does not exist yet fits every release. False: the
 * user of this process may not read the log's settings.
 */
export function checkLogBus(nats: NatsConnection, subjects: Subjects, own: BusRelease): Promise<boolean> {
  return retryUntilSettled(async () => {
    try {
      const first = await configOf(await jetstreamManager(nats), subjects.logStream(0));
      const refusal = first === undefined ? undefined : refusalOfLog(own, logBusOf(first));
      if (refusal !== undefined) throw new StartError(refusal);
      return true;
    } catch (error) {
      if (!isForbidden(error)) throw error;
      return false;
    }
  });
}

async function makeLogStreams(nats: NatsConnection, subjects: Subjects, options: LogOptions): Promise<void> {
  const manager = await jetstreamManager(nats);
  const needs = { allow_direct: true, ...(hasAtomicBatches(nats) ? { allow_atomic: true } : {}) };
  for (let partition = 0; partition < options.partitions; partition++) await makeLogStream(manager, subjects, partition, options, needs);
  if (options.bytesMax !== undefined) await limitLogStreams(manager, subjects, { ...options, bytesMax: options.bytesMax });
  await raiseLogBus(manager, subjects.logStream(0));
}

/** Never lowered, because a rollback leaves the data of the newer release in the log. */
async function raiseLogBus(manager: JetStreamManager, first: string): Promise<void> {
  const { config } = await manager.streams.info(first);
  const raised = busMetadata(logBusOf(config));
  if (raised !== undefined) await manager.streams.update(first, { metadata: { ...config.metadata, ...raised } });
}

/** Undefined: this release raises nothing. */
function busMetadata(stored: LogBus | undefined): Readonly<Record<string, string>> | undefined {
  const raised = raisedLogBus(stored, thisRelease());
  return raised === undefined ? undefined : { [BUS]: JSON.stringify(raised) };
}

/** Undefined: no release has stated a version. A text that does not decode is a later release's, and must not be replaced. */
function logBusOf({ name, metadata }: Pick<StreamConfig, "name" | "metadata">): LogBus | undefined {
  const text = metadata?.[BUS];
  if (text === undefined) return undefined;
  const stated = decodeJson(LogBus, new TextEncoder().encode(text));
  if (stated === undefined)
    throw new StartError(
      `the stream ${name} states ${text} as the bus version of its data, which this release cannot read. Start the release that wrote it, or a later one`,
    );
  return stated;
}

/** An older nats-server refuses the setting. */
function hasAtomicBatches({ info }: NatsConnection): boolean {
  const [major = 0, minor = 0] = (info?.version ?? "").split(".").map(Number);
  return major > 2 || (major === 2 && minor >= 12);
}

/**
 * nats-server reserves the limits, so it refuses those above its storage. The search for an automatic limit can reserve
 * all storage for a moment, so each process retries a refusal.
 */
async function limitLogStreams(
  manager: JetStreamManager,
  subjects: Subjects,
  { partitions, bytesMax }: Required<LogOptions>,
): Promise<void> {
  const total = bytesMax === 0 ? await automaticBytesMax(manager, subjects.logStream(0), partitions) : bytesMax;
  for (let partition = 0; total !== undefined && partition < partitions; partition++) {
    const limit = { max_bytes: Math.floor(total / partitions), discard: DiscardPolicy.New };
    const { config } = await manager.streams.info(subjects.logStream(partition));
    const { [SEARCHING]: search, ...metadata } = config.metadata ?? {};
    if (config.max_bytes === limit.max_bytes && config.discard === limit.discard && search === undefined) continue;
    const cause = await refusalOfLimit(manager, config.name, { ...limit, metadata });
    if (cause !== undefined)
      throw new SettingError(
        `nats-server cannot reserve COROOM_LOG_BYTES_MAX=${total} for the log. Lower it, or raise max_file_store or the limits of the account`,
        { cause },
      );
  }
}

/**
 * Half of the largest power of two that nats-server can reserve: snapshots and history need space too. If the first
 * stream has a limit already, all streams get the same. Undefined: there is nearly no storage.
 */
async function automaticBytesMax(manager: JetStreamManager, first: string, partitions: number): Promise<number | undefined> {
  for (let bytes = AUTOMATIC_BYTES_MAX; bytes >= AUTOMATIC_BYTES_MIN; bytes /= 2) {
    const { max_bytes, discard, metadata } = (await manager.streams.info(first)).config;
    if (max_bytes > 0 && discard === DiscardPolicy.New && metadata?.[SEARCHING] === undefined) return max_bytes * partitions;
    const tried = { max_bytes: 2 * bytes, discard: DiscardPolicy.New, metadata: { ...metadata, [SEARCHING]: "true" } };
    if ((await refusalOfLimit(manager, first, tried)) === undefined) return bytes;
  }
  return undefined;
}

type StreamLimit = Pick<StreamConfig, "max_bytes" | "discard" | "metadata">;

/** Undefined: the stream has the limit now. Else the storage is too small. */
async function refusalOfLimit(manager: JetStreamManager, stream: string, limit: StreamLimit): Promise<JetStreamApiError | undefined> {
  try {
    await manager.streams.update(stream, limit);
    return undefined;
  } catch (error) {
    if (!isStorageFull(error)) throw error;
    return error;
  }
}

/**
 * Another process may create the first stream at any moment with other settings. All processes then use that stream.
 */
async function makeLogStream(
  manager: JetStreamManager,
  subjects: Subjects,
  partition: number,
  options: LogOptions,
  needs: Pick<StreamConfig, "allow_direct" | "allow_atomic">,
): Promise<void> {
  const name = subjects.logStream(partition);
  const config = await configOf(manager, name);
  if (config !== undefined) {
    if (partition === 0) await agreeOnPartitions(manager, subjects, config, options.partitions);
    // The creator of the stream may not have allowed what readers and room servers need.
    if (!config.allow_direct || (needs.allow_atomic === true && config.allow_atomic !== true)) await manager.streams.update(name, needs);
    return ensureReplicas(manager, name, options.replicas);
  }
  try {
    await manager.streams.add({
      name,
      subjects: [subjects.logOfPartition(partition)],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      num_replicas: options.replicas,
      ...needs,
      duplicate_window: DUPLICATE_WINDOW_NANOS,
      republish: { src: subjects.logOfPartition(partition), dest: subjects.logRepublished },
      ...(partition === 0 ? { metadata: { [PARTITIONS]: String(options.partitions), ...busMetadata(undefined) } } : {}),
    });
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_EXISTS_OTHERWISE) throw error;
    if ((await configOf(manager, name)) === undefined) throw error;
    return makeLogStream(manager, subjects, partition, options, needs);
  }
}

async function agreeOnPartitions(manager: JetStreamManager, subjects: Subjects, first: StreamConfig, partitions: number): Promise<void> {
  if (refuseOtherPartitionCount(first, partitions)) return;
  const last = await lastStream(manager, subjects);
  if (last + 1 !== partitions) {
    const found = `the log has streams up to ${subjects.logStream(last)}, and ${first.name} does not state the number of partitions`;
    const ifLost = "Where streams are lost, or an earlier version is just making them, start again once they are there";
    const ifNot = `set COROOM_LOG_PARTITIONS=${last + 1} for every role, because rooms are spread over partitions by hash`;
    throw new SettingError(`${found}: not over COROOM_LOG_PARTITIONS=${partitions}. ${ifLost}; else ${ifNot}`);
  }
  await manager.streams.update(first.name, { metadata: { ...first.metadata, [PARTITIONS]: String(partitions) } });
}

/**
 * Returns whether the first stream states the number of partitions. Streams of earlier versions or of operators do not.
 */
function refuseOtherPartitionCount({ name, metadata }: StreamConfig, partitions: number): boolean {
  const stated = metadata?.[PARTITIONS];
  const refusal = stated === undefined ? undefined : refusalOfPartitions(stated, name, partitions);
  if (refusal !== undefined) throw new SettingError(refusal);
  return stated !== undefined;
}

/** What the first stream states. Undefined: there is no log, or it does not state its number of partitions. */
export async function statedPartitions(manager: JetStreamManager, subjects: Subjects): Promise<LogPartitions | undefined> {
  const text = (await configOf(manager, subjects.logStream(0)))?.metadata?.[PARTITIONS];
  return text === undefined ? undefined : parseLogPartitions(text);
}

/** Only for `coroom split-log`. `change`: other settings of the first stream that change at the same moment. */
export async function statePartitions(
  manager: JetStreamManager,
  subjects: Subjects,
  stated: LogPartitions,
  change: Partial<StreamConfig> = {},
): Promise<void> {
  const { config } = await manager.streams.info(subjects.logStream(0));
  await manager.streams.update(config.name, { ...change, metadata: { ...config.metadata, [PARTITIONS]: writeLogPartitions(stated) } });
}

/**
 * The highest number of a stream. Not the number of streams, because a stream in between may be lost. With too few
 * partitions, a room's records would be searched in the wrong stream.
 */
async function lastStream(manager: JetStreamManager, subjects: Subjects): Promise<number> {
  let last = 0;
  for await (const name of manager.streams.names(subjects.logOfPartition("*"))) {
    const partition = Number(name.slice(name.lastIndexOf("_") + 1));
    if (name === subjects.logStream(partition)) last = Math.max(last, partition);
  }
  return last;
}

async function configOf(manager: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  return (await findStream(manager, name))?.config;
}
