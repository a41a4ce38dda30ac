/** Tells the queue of webhooks that rooms are in use, or are no more, where an endpoint wants to hear it. Lost while NATS is away. */

import { randomUUID } from "node:crypto";

import { headers } from "nats";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import type { Clock } from "../../shared/clock.ts";
import { roomOf, tenantOf } from "../../shared/ids.ts";
import { type NatsConnection, say } from "../../shared/io/nats.ts";
import { wantsEventsOf, type WebhookEndpoint } from "../../shared/webhook-endpoints.ts";
import type { Activity } from "../ports.ts";

export function natsActivity(nats: NatsConnection, subjects: Subjects, endpoints: readonly WebhookEndpoint[], clock: Clock): Activity {
  return {
    tell: (room, type) => {
      const tenant = tenantOf(room);
      if (!wantsEventsOf(tenant, endpoints)) return;
      const event: WebhookEvent = { type, tenant, room: roomOf(room), at: clock.wallNow() };
      const named = headers();
      named.set("Nats-Msg-Id", randomUUID());
      say(nats, subjects.webhook(tenant), encodeJson(event), { headers: named });
    },
  };
}
