/** The webhook queue in JetStream: one bounded stream, and a durable consumer per endpoint that all services share. */

import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamClient,
  JetStreamApiError,
  jetstreamManager,
  type JetStreamManager,
  type JsMsg,
  StorageType,
} from "@nats-io/jetstream";

import { decodeJson, encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { TenantId } from "../../shared/ids.ts";
import { ensureReplicas, retryUntilSettled } from "../../shared/io/jetstream-stores.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
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
/** Includes events that wait for their next try. At this limit nothing new is delivered to the endpoint. */
const UNSETTLED_MAX = 10_000;
const STREAM_NOT_FOUND = 10_059;
const CONSUMER_NOT_FOUND = 10_014;
const ID_HEADER = "Nats-Msg-Id";

export async function jetstreamWebhooks(
  nats: NatsConnection,
  jetstream: JetStreamClient,
  subjects: Subjects,
  options: WebhookQueueOptions,
): Promise<WebhookQueue> {
  const manager = await jetstreamManager(nats);
  const stream = subjects.webhooksStream;
  await retryUntilSettled(() => ensureQueue(manager, subjects, options));

  return {
    add: async (id, event) => {
      await jetstream.publish(subjects.webhook(event.tenant as TenantId), encodeJson(event), { msgID: id });
    },
    take: async function* (endpoint, most, signal) {
      const consumer = await jetstream.consumers.get(stream, endpoint.name);
      const messages = await consumer.consume({ max_messages: most });
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
      const { num_pending, num_ack_pending } = await manager.consumers.info(stream, endpoint.name);
      return num_pending + num_ack_pending;
    },
  };
}

/** Creates the stream and its consumers if they are missing, and updates their limits. */
async function ensureQueue(manager: JetStreamManager, subjects: Subjects, options: WebhookQueueOptions): Promise<void> {
  const stream = subjects.webhooksStream;
  const limits = {
    max_msgs: options.webhookEventsMax,
    max_bytes: options.webhookBytesMax,
    max_age: options.webhookKeptMsMax * NANOS_PER_MS,
  };
  try {
    await manager.streams.update(stream, limits);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error;
    await manager.streams.add({
      name: stream,
      subjects: [subjects.allWebhooks],
      storage: StorageType.File,
      discard: DiscardPolicy.Old,
      num_replicas: options.logReplicas,
      ...limits,
    });
  }
  await ensureReplicas(manager, stream, options.logReplicas);
  for (const { name, tenant } of options.webhookUrls) {
    const delivery = {
      filter_subject: tenant === undefined ? subjects.allWebhooks : subjects.webhook(tenant),
      ack_wait: (2 * options.webhookTimeoutMs + SETTLE_MS_MAX) * NANOS_PER_MS,
      max_ack_pending: UNSETTLED_MAX,
    };
    try {
      await manager.consumers.update(stream, name, delivery);
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_NOT_FOUND) throw error;
      await manager.consumers.add(stream, {
        durable_name: name,
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.New,
        ...delivery,
      });
    }
  }
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
