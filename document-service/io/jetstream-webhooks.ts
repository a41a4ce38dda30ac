/** The queue of webhooks in JetStream: one stream within bounds, and a durable consumer for each endpoint, which all services share. */

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
import { ensureCopies, onceSettled } from "../../shared/io/copies.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { WebhookEndpoint } from "../../shared/webhook-endpoints.ts";
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
/** Beside the time of two tries: an event's own, and the one before it, behind which it may wait here already. */
const SETTLE_MS_MAX = 15_000;
/** Those that wait for their next try count among them: past it nothing new is delivered to the endpoint. */
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
  await onceSettled(() => ensureQueue(manager, subjects, options));

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

/** Stream and consumers are made where they are missing, and given these limits where they have others. */
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
  await ensureCopies(manager, stream, options.logReplicas);
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
