/**
 * Starts webhooks if the settings name an endpoint. An event is delivered as Standard Webhooks defines it: a POST with
 * an id, a date and a signature. A redirect counts as a failure, because the operator sets the address. Only the status
 * of the answer is read.
 */

import type { JetStreamClient } from "@nats-io/jetstream";

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { ChangeNotifications, DeliveryOutcome, WebhookCalls } from "../ports.ts";
import { ChangeQueueHost, NO_NOTIFICATIONS } from "../webhooks/change-queue-host.ts";
import type { ChangeQueueOptions } from "../webhooks/change-queue.ts";
import { WebhooksHost, type WebhooksOptions } from "../webhooks/delivery-host.ts";
import { signedHeaders } from "./signed-requests.ts";
import { jetstreamWebhooks, type WebhookQueueOptions } from "./jetstream-webhooks.ts";

type WebhookConfig = ChangeQueueOptions & WebhooksOptions & WebhookQueueOptions & WebhookCallOptions;

type WebhookDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  readonly operations: Operations;
};

export async function startWebhooks(
  nats: NatsConnection,
  streams: JetStreamClient,
  subjects: Subjects,
  config: WebhookConfig,
  { operations, ...deps }: WebhookDeps,
): Promise<{ notifications: ChangeNotifications; stop(): Promise<void> }> {
  if (config.webhookUrls.length === 0) return { notifications: NO_NOTIFICATIONS, stop: () => Promise.resolve() };
  const queue = await jetstreamWebhooks(nats, streams, subjects, config, deps.log);
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

type WebhookCallOptions = { readonly webhookSecrets: ReadonlyMap<string, string>; readonly webhookTimeoutMs: number };

const GONE = 410;

/** Each endpoint has a secret. */
export function webhookCalls({ webhookSecrets, webhookTimeoutMs }: WebhookCallOptions, clock: Pick<Clock, "wallNow">): WebhookCalls {
  return {
    deliver: async ({ name, url }, id, event) => {
      const body = bodyOf(event);
      const headers = signedHeaders(webhookSecrets.get(name), id, body, clock);
      try {
        const response = await fetch(url, {
          method: "POST",
          headers,
          body,
          redirect: "manual",
          signal: AbortSignal.timeout(webhookTimeoutMs),
        });
        await response.body?.cancel();
        return outcomeOf(response, clock.wallNow());
      } catch (error) {
        // fetch throws these when the endpoint does not answer, or not in time.
        if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error;
        return { kind: "failed", why: error instanceof DOMException ? `no answer within ${webhookTimeoutMs} ms` : "it cannot be reached" };
      }
    },
  };
}

function bodyOf({ type, at, ...data }: WebhookEvent): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data });
}

function outcomeOf({ ok, status, headers }: Response, now: UnixMillis): DeliveryOutcome {
  if (ok) return { kind: "delivered" };
  const why = `HTTP ${status}`;
  if (status === GONE) return { kind: "refused", why };
  const retryAfterMs = retryAfterMsOf(headers.get("retry-after") ?? "", now);
  return { kind: "failed", why, ...(retryAfterMs > 0 ? { retryAfterMs } : {}) };
}

/** `given`: seconds or a date (RFC 9110, 10.2.3). NaN for anything else. */
function retryAfterMsOf(given: string, now: UnixMillis): number {
  const seconds = Number(given);
  return Number.isNaN(seconds) ? Date.parse(given) - now : seconds * 1000;
}
