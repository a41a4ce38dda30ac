/** Everything that webhooks take, where settings name an endpoint; else nothing. */

import type { JetStreamClient } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { ensureOperationsStream, natsOperations, type OperationsLimits } from "../../shared/io/nats-operations.ts";
import type { Log } from "../../shared/process/log.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { ChangeQueueOptions } from "../webhooks/change-queue.ts";
import { ChangeQueueHost, NO_NOTIFICATIONS } from "../webhooks/change-queue-host.ts";
import type { ChangeNotifications } from "../ports.ts";
import { WebhooksHost, type WebhooksOptions } from "../webhooks/delivery-host.ts";
import { jetstreamWebhooks, type WebhookQueueOptions } from "./jetstream-webhooks.ts";
import { webhookCalls, type WebhookCallOptions } from "./webhook-calls.ts";

export type WebhookConfig = ChangeQueueOptions & WebhooksOptions & WebhookQueueOptions & WebhookCallOptions & OperationsLimits;
/** `service`: who tells operations. */
export type WebhookDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics; readonly service: string };

export async function startWebhooks(
  nats: NatsConnection,
  streams: JetStreamClient,
  subjects: Subjects,
  config: WebhookConfig,
  { service, ...deps }: WebhookDeps,
): Promise<{ notifications: ChangeNotifications; stop(): Promise<void> }> {
  if (config.webhookUrls.length === 0) return { notifications: NO_NOTIFICATIONS, stop: () => Promise.resolve() };
  const queue = await jetstreamWebhooks(nats, streams, subjects, config);
  await ensureOperationsStream(nats, subjects, config);
  const operations = natsOperations(nats, subjects, service, { ...deps, count: () => {} });
  const notifications = new ChangeQueueHost(queue, config, deps);
  const webhooks = new WebhooksHost(queue, webhookCalls(config, deps.clock), config, { ...deps, operations, random: Math.random });
  return {
    notifications,
    stop: async () => {
      notifications.stop();
      await webhooks.stop();
    },
  };
}
