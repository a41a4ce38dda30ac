/**
 * Reports operations events: to this process's log, and over core NATS to the stream that keeps the newest. Nothing
 * waits for the stream: an event that NATS loses is still in the log.
 */

import { DiscardPolicy, jetstreamManager, JetStreamApiError, StorageType, DeliverPolicy, jetstream } from "@nats-io/jetstream";

import { encodeJson, decodeJson } from "../bus/json-messages.ts";
import { OperationsEvent, type Operations } from "../bus/operations-events.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { Clock } from "../time/clock.ts";
import type { Log } from "../process/log.ts";
import type { SharedConfig } from "../settings/common-settings.ts";
import { ensureReplicas, retryUntilSettled } from "./jetstream-stores.ts";
import { type NatsConnection, publish } from "./nats.ts";

const NANOS_PER_MS = 1_000_000;
const STREAM_NOT_FOUND = 10_059;

export type OperationsLimits = Pick<SharedConfig, "opsEventsMax" | "opsBytesMax" | "opsKeptMsMax" | "logReplicas">;

/** Creates the stream if it is missing, and sets its limits. The oldest events make room for new ones. */
export function ensureOperationsStream(nats: NatsConnection, subjects: Subjects, limits: OperationsLimits): Promise<void> {
  return retryUntilSettled(() => makeOperationsStream(nats, subjects, limits));
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
    await ensureReplicas(manager, subjects.operationsStream, logReplicas);
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

/** `by`: the process that reports. `count`: the counter of the tier, by kind. */
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
      log.info(report, "published an event to operations");
      publish(nats, subjects.operations(report.kind), encodeJson(event));
    },
  };
}

/** `seq`: in the stream. `event`: undefined for an unknown kind. */
type NumberedEvent = { readonly seq: number; readonly event: OperationsEvent | undefined };

/**
 * The newest `last` stored events, then each new one, without a gap. Ends with `signal`. Unknown kinds are left out.
 */
export async function* watchOperations(
  nats: NatsConnection,
  subjects: Subjects,
  last: number,
  signal: AbortSignal,
): AsyncIterable<OperationsEvent> {
  for await (const { event } of watchNumbered(nats, subjects, last, signal)) if (event !== undefined) yield event;
}

/** `onBegun`: receives the seq of the newest stored event before any event arrives; 0 if none is stored. */
export async function* watchNumbered(
  nats: NatsConnection,
  subjects: Subjects,
  last: number,
  signal: AbortSignal,
  onBegun: (newest: number) => void = () => {},
): AsyncIterable<NumberedEvent> {
  const client = jetstream(nats);
  const { state } = await (await client.jetstreamManager()).streams.info(subjects.operationsStream);
  onBegun(state.messages === 0 ? 0 : state.last_seq);
  const first = Math.max(state.first_seq, state.last_seq + 1 - last, 1);
  const consumer = await client.consumers.get(subjects.operationsStream, {
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: first,
  });
  const messages = await consumer.consume();
  const stop = (): void => messages.stop();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  for await (const message of messages) yield { seq: message.seq, event: decodeJson(OperationsEvent, message.data) };
}
