/**
 * Creates the streams of the log where they are missing. Every tier that touches the log calls this at its
 * start, so that none depends on another having been first. Streams have no age limit: only the document
 * service removes from them, and only what a snapshot covers.
 */

import { jetstreamManager, JetStreamApiError, RetentionPolicy, StorageType } from "@nats-io/jetstream";

import type { Subjects } from "../bus/subjects.ts";
import { ensureCopies, onceSettled } from "./copies.ts";
import type { NatsConnection } from "./nats.ts";

const STREAM_NOT_FOUND = 10_059;
const DUPLICATE_WINDOW_NANOS = 120_000_000_000;

/** `replicas`: 1, 3 or 5; `partitions` is fixed for the life of a deployment, rooms are spread over it by hash. */
export function ensureLogStreams(nats: NatsConnection, subjects: Subjects, options: { partitions: number; replicas: number }): Promise<void> {
  return onceSettled(() => makeLogStreams(nats, subjects, options));
}

async function makeLogStreams(nats: NatsConnection, subjects: Subjects, options: { partitions: number; replicas: number }): Promise<void> {
  const manager = await jetstreamManager(nats);
  for (let partition = 0; partition < options.partitions; partition++) {
    const name = subjects.logStream(partition);
    try {
      const { config } = await manager.streams.info(name);
      if (!config.allow_direct) await manager.streams.update(name, { allow_direct: true }); // Whoever made it did not think of its readers, who ask by direct gets.
      await ensureCopies(manager, name, options.replicas);
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
      await manager.streams.add({
        name,
        subjects: [subjects.logOfPartition(partition)],
        storage: StorageType.File,
        retention: RetentionPolicy.Limits,
        num_replicas: options.replicas,
        allow_direct: true,
        duplicate_window: DUPLICATE_WINDOW_NANOS,
        republish: { src: subjects.logOfPartition(partition), dest: subjects.logRepublished },
      });
    }
  }
}
