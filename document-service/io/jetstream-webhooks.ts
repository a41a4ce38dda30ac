/**
 * The webhook queue in JetStream: one bounded stream, and a durable consumer per endpoint that all services share. A
 * stream or consumer that is lost while the process runs is created again, because no checkpoint may cover a change
 * before the queue has it: without a queue no room would be saved.
 */

import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamClient,
  JetStreamApiError,
  jetstreamManager,
  type JetStreamManager,
  type JsMsg,
  RetentionPolicy,
  StorageType,
} from "@nats-io/jetstream";
import { RequestError } from "nats";

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { TenantId } from "../../shared/ids.ts";
import { ensureReplicas, retryUntilSettled } from "../../shared/io/jetstream-stores.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { WebhookEndpoint } from "../../shared/settings/webhook-endpoints.ts";
import type { QueuedEvent, WebhookQueue } from "../ports.ts";

export type WebhookQueueOptions = {
  readonly webhookUrls: readonly WebhookEndpoint[];
  readonly webhookEventsMax: number;
  readonly webhookBytesMax: number;
  readonly webhookKeptMsMax: number;
  readonly webhookTimeoutMs: number;
  readonly logReplicas: number;
};

const NANOS_PER_MS = 1_000_000;
/** Added to the time of two tries, because an event may wait for the try of the event before it. */
const SETTLE_MS_MAX = 15_000;
/**
 * Includes events that wait for their next try. At this limit nothing new is delivered to the endpoint. The endpoint of
 * all tenants may have as many in addition to all events of one tenant, because an application may fail for one tenant.
 */
const UNSETTLED_MAX = 10_000;
/** Part of the queue that events of one tenant may fill. */
const TENANT_SHARE = 0.75;
/** Bytes of the largest event as nats-server stores it: a room's name of 128 characters, in the id too, where a character may take 9 bytes. */
const EVENT_BYTES_MAX = 2_048;
const STREAM_NOT_FOUND = 10_059;
const CONSUMER_NOT_FOUND = 10_014;
const ID_HEADER = "Nats-Msg-Id";

export async function jetstreamWebhooks(
  nats: NatsConnection,
  jetstream: JetStreamClient,
  subjects: Subjects,
  options: WebhookQueueOptions,
  log: Log,
): Promise<WebhookQueue> {
  const manager = await jetstreamManager(nats);
  const stream = subjects.webhooksStream;
  await retryUntilSettled(() => makeMissing(manager, subjects, options));
  await retryUntilSettled(() => updateLimits(manager, subjects, options));
  let making: Promise<void> | undefined;
  const makeAgain = async (): Promise<void> => {
    await makeMissing(manager, subjects, options);
    log.error({ stream }, "the queue of webhooks was lost and is created again. Endpoints do not receive the events that were in it");
  };
  /** All requests that find the queue lost share one repair: each room with a change has one. */
  const recovered = async <Answer>(request: () => Promise<Answer>): Promise<Answer> => {
    try {
      return await request();
    } catch (error) {
      if (!isQueueLost(error)) throw error;
      await (making ??= makeAgain().finally(() => (making = undefined)));
      return request();
    }
  };

  return {
    add: async (id, event) => {
      const subject = subjects.webhook(event.tenant as TenantId);
      await recovered(() => jetstream.publish(subject, encodeJson(event), { msgID: id }));
    },
    take: async function* (endpoint, most, signal) {
      const consumer = await recovered(() => jetstream.consumers.get(stream, endpoint.name));
      const messages = await consumer.consume({ max_messages: most, abort_on_missing_resource: true });
      const end = (): void => messages.stop();
      signal.addEventListener("abort", end);
      try {
        if (!signal.aborted) for await (const message of messages) yield queued(message);
      } finally {
        signal.removeEventListener("abort", end);
        messages.stop();
      }
    },
    waiting: async (endpoint) => {
      const { num_pending, num_ack_pending } = await recovered(() => manager.consumers.info(stream, endpoint.name));
      return num_pending + num_ack_pending;
    },
  };
}

/** The stream or a consumer does not exist. Nobody answers what is published for a stream that does not exist. */
function isQueueLost(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.code === STREAM_NOT_FOUND || error.code === CONSUMER_NOT_FOUND;
  return error instanceof Error && error.cause instanceof RequestError && error.cause.isNoResponders();
}

/** Creates the stream and its consumers where they are missing. It changes no existing one, which may be in removal. */
async function makeMissing(manager: JetStreamManager, subjects: Subjects, options: WebhookQueueOptions): Promise<void> {
  const stream = subjects.webhooksStream;
  await unlessFound(STREAM_NOT_FOUND, manager.streams.info(stream), () =>
    manager.streams.add({
      name: stream,
      subjects: [subjects.allWebhooks],
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      num_replicas: options.logReplicas,
      ...limitsOf(options),
    }),
  );
  for (const endpoint of options.webhookUrls) {
    await unlessFound(CONSUMER_NOT_FOUND, manager.consumers.info(stream, endpoint.name), () =>
      manager.consumers.add(stream, {
        durable_name: endpoint.name,
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.New,
        ...deliveryTo(endpoint, subjects, options),
      }),
    );
  }
}

/** Applies the current settings to the stream and its consumers. */
async function updateLimits(manager: JetStreamManager, subjects: Subjects, options: WebhookQueueOptions): Promise<void> {
  const stream = subjects.webhooksStream;
  await manager.streams.update(stream, limitsOf(options));
  await ensureReplicas(manager, stream, options.logReplicas);
  for (const endpoint of options.webhookUrls) {
    await manager.consumers.update(stream, endpoint.name, deliveryTo(endpoint, subjects, options));
  }
}

async function unlessFound(notFound: number, found: Promise<unknown>, make: () => Promise<unknown>): Promise<void> {
  try {
    await found;
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== notFound) throw error;
    await make();
  }
}

/**
 * The subject of an event is its tenant. So the limit per subject makes each tenant lose its own oldest events. With
 * `Interest` the stream removes an event once each endpoint that receives it has settled it.
 */
function limitsOf({ webhookEventsMax, webhookBytesMax, webhookKeptMsMax }: WebhookQueueOptions) {
  return {
    retention: RetentionPolicy.Interest,
    max_msgs: webhookEventsMax,
    max_bytes: webhookBytesMax,
    max_age: webhookKeptMsMax * NANOS_PER_MS,
    max_msgs_per_subject: tenantEventsMax({ webhookEventsMax, webhookBytesMax }),
  };
}

function tenantEventsMax({ webhookEventsMax, webhookBytesMax }: Pick<WebhookQueueOptions, "webhookEventsMax" | "webhookBytesMax">): number {
  return Math.max(1, Math.floor(TENANT_SHARE * Math.min(webhookEventsMax, webhookBytesMax / EVENT_BYTES_MAX)));
}

function deliveryTo({ tenant }: WebhookEndpoint, subjects: Subjects, options: WebhookQueueOptions) {
  return {
    filter_subject: tenant === undefined ? subjects.allWebhooks : subjects.webhook(tenant),
    ack_wait: (2 * options.webhookTimeoutMs + SETTLE_MS_MAX) * NANOS_PER_MS,
    max_ack_pending: tenant === undefined ? UNSETTLED_MAX + tenantEventsMax(options) : UNSETTLED_MAX,
  };
}

function queued(message: JsMsg): QueuedEvent {
  const { stream, streamSequence, deliveryCount } = message.info;
  const id = message.headers?.get(ID_HEADER) ?? "";
  return {
    id: id === "" ? `${stream}-${streamSequence}` : id,
    event: decodeJson(WebhookEvent, message.data),
    attempt: deliveryCount,
    settle: (next) => {
      switch (next.kind) {
        case "done":
          return message.ack();
        case "again":
          return message.nak(next.afterMs);
        case "give-up":
          return message.term(next.why);
      }
    },
  };
}
