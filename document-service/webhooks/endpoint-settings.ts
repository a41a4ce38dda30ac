/** Settings of requests to the application: webhooks, and the first content of rooms. */

import type { SharedConfig } from "../../shared/settings/common-settings.ts";
import { constant, positiveInteger, SettingError, type Settings, type Values } from "../../shared/settings/settings.ts";
import { webhookSecrets } from "../../shared/settings/webhook-endpoints.ts";

/** Gateways wait 15 s for a document service, which has to convert the answer too. */
const FIRST_CONTENT_MS_MAX = 10_000;

function firstContentTimeout(raw: string): number {
  const ms = positiveInteger(raw);
  if (ms > FIRST_CONTENT_MS_MAX) throw new SettingError(`must be at most ${FIRST_CONTENT_MS_MAX}, because gateways wait for 15 s`);
  return ms;
}

export const endpointSettings = {
  webhookSecrets: {
    parse: webhookSecrets,
    secret: true,
    fallback: new Map<string, string>(),
    shownAs: "none",
    meaning: "Secrets that sign the requests to COROOM_WEBHOOK_URLS and COROOM_FIRST_CONTENT_URLS, comma-separated.",
    basic: true,
  },
  webhookQuietMs: { parse: positiveInteger, fallback: 2_000, meaning: "Milliseconds of quiet in a room before a change event is sent." },
  webhookChangeMsMax: {
    parse: positiveInteger,
    fallback: 30_000,
    meaning: "Maximum milliseconds until a change event is sent for a room that is never quiet.",
  },
  webhookTimeoutMs: {
    parse: positiveInteger,
    fallback: 15_000,
    meaning: "Milliseconds that a webhook endpoint may take to answer. The event is sent again later.",
  },
  webhookAttemptsMax: {
    parse: positiveInteger,
    fallback: 10,
    meaning: "Maximum number of delivery attempts per event, over about five hours. The event is dropped afterwards.",
  },
  /** Maximum number of concurrent deliveries to one endpoint per document service. */
  webhookDeliveriesMax: constant(8),
  webhookEventsMax: {
    parse: positiveInteger,
    fallback: 100_000,
    meaning: "Maximum number of queued webhook events. The oldest are dropped first.",
  },
  webhookBytesMax: { parse: positiveInteger, fallback: 200 * 1024 ** 2, meaning: "Maximum bytes of queued webhook events." },
  webhookKeptMsMax: {
    parse: positiveInteger,
    fallback: 24 * 3_600_000,
    meaning: "Milliseconds that an undelivered webhook event is kept.",
  },

  firstContentTimeoutMs: {
    parse: firstContentTimeout,
    fallback: 5_000,
    meaning: "Milliseconds that the application may take to answer with the first content of a room, at most 10000. Clients ask again.",
  },
  /** Concurrent requests for first content from a document service to one application. Further ones wait. */
  firstContentCallsMax: constant(32),
} as const satisfies Settings;

export type SignedEndpoints = Pick<SharedConfig, "webhookUrls" | "firstContentUrls">;

/** Throws if requests to an endpoint would have no signature. */
export function refuseUnsigned({
  webhookUrls,
  firstContentUrls,
  webhookSecrets: secrets,
}: SignedEndpoints & Values<typeof endpointSettings>): void {
  const unsigned = [...webhookUrls, ...firstContentUrls].filter(({ name }) => !secrets.has(name));
  if (unsigned.length > 0) {
    const missing = new Set(unsigned.map(({ tenant }) => `${tenant === undefined ? "" : `${tenant}=`}whsec_…`));
    throw new SettingError(
      `webhooks and requests for first content are signed: add ${[...missing].join(",")} to COROOM_WEBHOOK_SECRETS. This command prints a secret: echo whsec_$(openssl rand -base64 32)`,
    );
  }
}
