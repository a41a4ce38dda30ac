/**
 * Reports operations events to this process's log, and to the stream that keeps the newest. No caller waits for the stream.
 * An event about a failure is sent again until the stream has it: while NATS or its disk fails, nothing is stored.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { DiscardPolicy, jetstreamManager, JetStreamApiError, StorageType } from "@nats-io/jetstream";

import { headers } from "nats";
import { z } from "zod";

import { encodeJson, decodeJson } from "../bus/json-messages.ts";
import { OperationsEvent, type Operations, type OperationsReport } from "../bus/operations-events.ts";
import type { Subjects } from "../bus/subjects.ts";
import type { Millis } from "../ids.ts";
import { TenantEvents } from "../limits/tenant-events.ts";
import type { Clock } from "../time/clock.ts";
import { pause } from "../time/pause.ts";
import type { Log } from "../process/log.ts";
import type { SharedConfig } from "../settings/common-settings.ts";
import { ensureReplicas, findStream, retryUntilSettled } from "./jetstream-stores.ts";
import { isNoAnswer } from "./nats-json.ts";
import { type NatsConnection, publish } from "./nats.ts";

const NANOS_PER_MS = 1_000_000;
const NO_MESSAGE_FOUND = 10_037;
const READS_AT_ONCE = 64;
/** Interval between two checks for new events. A console asks once a second. */
const LOOK_MS = 250;

type OperationsLimits = Pick<SharedConfig, "opsEventsMax" | "opsBytesMax" | "opsKeptMsMax" | "logReplicas">;

/** Creates the stream if it is missing, and sets its limits. New events replace the oldest ones. */
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
  const config = (await findStream(manager, subjects.operationsStream))?.config;
  if (config === undefined) {
    await streams.add({
      name: subjects.operationsStream,
      subjects: [subjects.allOperations],
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      num_replicas: logReplicas,
      ...limits,
    });
    return;
  }
  if (config.max_msgs !== limits.max_msgs || config.max_bytes !== limits.max_bytes || config.max_age !== limits.max_age) {
    await streams.update(subjects.operationsStream, limits);
  }
  await ensureReplicas(manager, subjects.operationsStream, logReplicas);
}

/** Whether any tier of the environment was ever started. */
export async function hasOperationsStream(nats: NatsConnection, subjects: Subjects): Promise<boolean> {
  return (await findStream(await jetstreamManager(nats), subjects.operationsStream)) !== undefined;
}

/** Thousands at once when a server is lost. One that the stream does not get is still in the log. */
const ROUTINE: ReadonlySet<OperationsEvent["kind"]> = new Set(["room_claimed", "room_ended", "room_placed"]);
const STORED_MS_MAX = 2_000;
const RETRY_MS = 1_000;
/** An hour: a full disk may take somebody a while. */
const RETRIES_MAX = 1_200;
const UNSTORED_MAX = 100;

/** `by`: the process that reports. `count`: the counter of the tier, by kind. `settled`: for a process that is about to end. */
export function natsOperations(
  nats: NatsConnection,
  subjects: Subjects,
  by: string,
  { clock, log, count }: { clock: Clock; log: Log; count: (kind: OperationsEvent["kind"]) => void },
): Operations & { settled(): Promise<void> } {
  const unstored = new Set<Promise<void>>();
  const ofTenants = new TenantEvents();
  const store = async (event: OperationsEvent, id: string): Promise<void> => {
    const meant = headers();
    meant.set("Nats-Msg-Id", id); // A copy whose answer was lost is stored once.
    for (let tries = 0; tries < RETRIES_MAX && !nats.isClosed() && !nats.isDraining(); tries++) {
      const answer = await nats
        .request(subjects.operations(event.kind), encodeJson(event), { headers: meant, timeout: STORED_MS_MAX })
        .catch(undefinedIfSilent);
      if (answer !== undefined && decodeJson(STORED, answer.data) !== undefined) return;
      await pause(clock, RETRY_MS);
    }
  };
  return {
    report: (report) => {
      const event: OperationsEvent = { ...report, at: clock.wallNow(), by };
      count(report.kind);
      if (!ofTenants.mayPublish(report, clock.now())) return;
      log.info(report, "published an event to operations");
      if (ROUTINE.has(report.kind) || unstored.size >= UNSTORED_MAX)
        return publish(nats, subjects.operations(report.kind), encodeJson(event));
      const storing = store(event, idOf(report)).finally(() => unstored.delete(storing));
      unstored.add(storing);
    },
    settled: async () => void (await Promise.all(unstored)),
  };
}

/** Several processes report the same lost process. The event is stored once. `count` differs if the same process is lost again. */
function idOf(report: OperationsReport): string {
  return report.kind === "process_lost" ? `${report.kind} ${report.instance} ${report.count} ${report.state}` : randomUUID();
}

const STORED = z.object({ seq: z.int(), error: z.undefined().optional() });

function undefinedIfSilent(error: unknown): undefined {
  if (!isNoAnswer(error)) throw error;
}

/**
 * Reports each time that NATS was out of reach, once it is back. The connection to a stuck server ends up to 15 s after
 * the server stops to answer, so that outage begins with the first ping without an answer. A server that answers again
 * before keeps the connection, but was out of reach as well.
 */
export async function reportOutages(
  nats: Pick<NatsConnection, "status" | "flush">,
  operations: Operations,
  clock: Pick<Clock, "now">,
): Promise<void> {
  let pingedAt: Millis | undefined;
  let lostAt: Millis | undefined;
  const reportSince = (begin: Millis): void => operations.report({ kind: "nats_lost", downMs: Math.round(clock.now() - begin) });
  for await (const status of nats.status()) {
    if (status.type === "ping" && status.pendingPings === 1) pingedAt = clock.now();
    if (status.type === "ping" && status.pendingPings === 2 && pingedAt !== undefined) {
      const begin = pingedAt;
      nats.flush().then(
        () => reportSince(begin),
        () => {}, // The connection ended: `disconnect` and `reconnect` follow.
      );
    }
    if (status.type === "staleConnection") lostAt ??= pingedAt;
    if (status.type === "disconnect") lostAt ??= clock.now();
    if (status.type !== "reconnect" || lostAt === undefined) continue;
    reportSince(lostAt);
    lostAt = undefined;
  }
}

/** `seq`: in the stream. `event`: undefined for an unknown kind. */
type NumberedEvent = { readonly seq: number; readonly event: OperationsEvent | undefined };

/**
 * The newest `last` stored events, then each new one, without a gap. Ends with `signal`. Unknown kinds are left out. It
 * reads single messages, because a gateway has no permission for a consumer (`shared/bus/permissions.ts`).
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
  const stream = subjects.operationsStream;
  const { streams } = await jetstreamManager(nats);
  let { state } = await streams.info(stream);
  onBegun(state.messages === 0 ? 0 : state.last_seq);
  let next = Math.max(state.first_seq, state.last_seq + 1 - last, 1);
  while (!signal.aborted) {
    for (; next <= state.last_seq && !signal.aborted; next += READS_AT_ONCE) {
      const seqs = Array.from({ length: Math.min(READS_AT_ONCE, state.last_seq + 1 - next) }, (_, index) => next + index);
      for (const message of await Promise.all(seqs.map((seq) => streams.getMessage(stream, { seq }).catch(nullIfRemoved)))) {
        if (message !== null) yield { seq: message.seq, event: decodeJson(OperationsEvent, message.data) };
      }
    }
    next = state.last_seq + 1;
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {}); // Aborted.
    if (!signal.aborted) ({ state } = await streams.info(stream));
    next = Math.max(next, state.first_seq);
  }
}

/** Newer events replaced this event after the stream was examined. */
function nullIfRemoved(error: unknown): null {
  if (!(error instanceof JetStreamApiError) || error.code !== NO_MESSAGE_FOUND) throw error;
  return null;
}
