/**
 * Tells operations of events: into the log of this process, and over core NATS into the stream that keeps the newest.
 * Nothing waits for the stream: an event that NATS loses is still in the log.
 */

import { DiscardPolicy, jetstreamManager, JetStreamApiError, StorageType } from "@nats-io/jetstream";

import { encodeJson } from "../bus/json-messages.ts";
import type { OperationsEvent } from "../bus/operations-events.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Operations } from "../operations.ts";
import type { SharedConfig } from "../settings.ts";
import { ensureCopies, onceSettled } from "./copies.ts";
import { type NatsConnection, say } from "./nats.ts";

const NANOS_PER_MS = 1_000_000;
const STREAM_NOT_FOUND = 10_059;

export type OperationsLimits = Pick<SharedConfig, "opsEventsMax" | "opsBytesMax" | "opsKeptMsMax" | "logReplicas">;

/** Creates the stream where it is missing, and gives it these limits where it has others. Its oldest events make room for new ones. */
export function ensureOperationsStream(nats: NatsConnection, subjects: Subjects, limits: OperationsLimits): Promise<void> {
  return onceSettled(() => makeOperationsStream(nats, subjects, limits));
}

async function makeOperationsStream(
  nats: NatsConnection,
  subjects: Subjects,
  { opsEventsMax, opsBytesMax, opsKeptMsMax, logReplicas }: OperationsLimits,
): Promise<void> {
  const manager = await jetstreamManager(nats);
  const { streams } = manager;
  const limits = { max_msgs: opsEventsMax, max_bytes: opsBytesMax, max_age: opsKeptMsMax * NANOS_PER_MS };
  try {
    const { config } = await streams.info(subjects.operationsStream);
    if (config.max_msgs !== limits.max_msgs || config.max_bytes !== limits.max_bytes || config.max_age !== limits.max_age) {
      await streams.update(subjects.operationsStream, limits);
    }
    await ensureCopies(manager, subjects.operationsStream, logReplicas);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
    await streams.add({
      name: subjects.operationsStream,
      subjects: [subjects.allOperations],
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      num_replicas: logReplicas,
      ...limits,
    });
  }
}

/** Whether any tier of the environment was ever started. */
export async function hasOperationsStream(nats: NatsConnection, subjects: Subjects): Promise<boolean> {
  try {
    await (await jetstreamManager(nats)).streams.info(subjects.operationsStream);
    return true;
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
    return false;
  }
}

/** `by`: who tells; `count`: the tier's counter, by kind. */
export function natsOperations(
  nats: NatsConnection,
  subjects: Subjects,
  by: string,
  { clock, log, count }: { clock: Clock; log: Log; count: (kind: OperationsEvent["kind"]) => void },
): Operations {
  return {
    report: (report) => {
      const event: OperationsEvent = { ...report, at: clock.wallNow(), by };
      count(report.kind);
      log.info(report, "told operations of an event");
      say(nats, subjects.operations(report.kind), encodeJson(event));
    },
  };
}
