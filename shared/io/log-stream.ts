/**
 * Creates the streams of the log where they are missing. Every tier that touches the log calls this at its
 * start, so that none depends on another having been first. Streams have no age limit: only the document
 * service removes from them, and only what a snapshot covers.
 *
 * How many there are stands in the first one: whoever spread rooms over another number would look for a room's records
 * where they are not, and two owners of one room would not fence each other.
 */

import { jetstreamManager, JetStreamApiError, type JetStreamManager, RetentionPolicy, StorageType, type StreamConfig } from "@nats-io/jetstream";

import type { Subjects } from "../bus/subjects.ts";
import { SettingError } from "../config.ts";
import { ensureCopies, onceSettled } from "./copies.ts";
import type { NatsConnection } from "./nats.ts";

const STREAM_NOT_FOUND = 10_059;
const STREAM_EXISTS_OTHERWISE = 10_058;
const DUPLICATE_WINDOW_NANOS = 120_000_000_000;
/** In the first stream's metadata. */
const PARTITIONS = "coroom.partitions";

type LogOptions = { readonly partitions: number; readonly replicas: number };

/** `replicas`: 1, 3 or 5; `partitions` is fixed for the life of a deployment, rooms are spread over it by hash. Refuses another number of them with a SettingError. */
export function ensureLogStreams(nats: NatsConnection, subjects: Subjects, options: LogOptions): Promise<void> {
  return onceSettled(() => makeLogStreams(nats, subjects, options));
}

async function makeLogStreams(nats: NatsConnection, subjects: Subjects, options: LogOptions): Promise<void> {
  const manager = await jetstreamManager(nats);
  for (let partition = 0; partition < options.partitions; partition++) await makeLogStream(manager, subjects, partition, options);
}

/** The first one is agreed on however it came to be: another process may make it at any moment, with other settings. */
async function makeLogStream(manager: JetStreamManager, subjects: Subjects, partition: number, options: LogOptions): Promise<void> {
  const name = subjects.logStream(partition);
  const config = await configOf(manager, name);
  if (config !== undefined) {
    if (partition === 0) await agreeOnPartitions(manager, subjects, config, options.partitions);
    if (!config.allow_direct) await manager.streams.update(name, { allow_direct: true }); // Whoever made it did not think of its readers, who ask by direct gets.
    return ensureCopies(manager, name, options.replicas);
  }
  try {
    await manager.streams.add({
      name,
      subjects: [subjects.logOfPartition(partition)],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      num_replicas: options.replicas,
      allow_direct: true,
      duplicate_window: DUPLICATE_WINDOW_NANOS,
      republish: { src: subjects.logOfPartition(partition), dest: subjects.logRepublished },
      ...(partition === 0 ? { metadata: { [PARTITIONS]: String(options.partitions) } } : {}),
    });
  } catch (error) {
    const made = error instanceof JetStreamApiError && error.code === STREAM_EXISTS_OTHERWISE ? await configOf(manager, name) : undefined;
    if (partition === 0 && made !== undefined) await agreeOnPartitions(manager, subjects, made, options.partitions);
    throw error;
  }
}

async function agreeOnPartitions(manager: JetStreamManager, subjects: Subjects, { name, metadata }: StreamConfig, partitions: number): Promise<void> {
  const known = metadata?.[PARTITIONS] === undefined ? await countStreams(manager, subjects) : Number(metadata[PARTITIONS]);
  if (known !== partitions) {
    throw new SettingError(`rooms are spread over ${known} streams of the log (${name} is the first), not over ${partitions}: set COROOM_LOG_PARTITIONS=${known} for every role, it is fixed for the life of a deployment`);
  }
  if (metadata?.[PARTITIONS] === undefined) await manager.streams.update(name, { metadata: { ...metadata, [PARTITIONS]: String(partitions) } });
}

/** Of a log that does not say how many there are: an earlier version made it, or an operator. */
async function countStreams(manager: JetStreamManager, subjects: Subjects): Promise<number> {
  let count = 1;
  while ((await configOf(manager, subjects.logStream(count))) !== undefined) count += 1;
  return count;
}

async function configOf(manager: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
    return undefined;
  }
}
