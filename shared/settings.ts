/** The settings that every role reads. Each role's own stand beside its tier. */

import { oneOf, positiveInteger, type Settings, SettingError, text, type Values } from "./config.ts";
import { tracesSettings } from "./traces-settings.ts";
import { webhookEndpoints } from "./webhook-endpoints.ts";

export const sharedSettings = {
  environment: {
    parse: environmentName,
    fallback: "development",
    meaning: "prefix of every NATS subject, stream, bucket and Redis key: letters, digits, _ and -",
  },
  natsUrl: {
    parse: text,
    secret: true,
    fallback: "nats://127.0.0.1:4222",
    meaning: "the NATS servers, comma-separated; with a user: nats://user:password@host; tls://host: with TLS only",
  },
  natsCredentials: {
    parse: text,
    fallback: "",
    meaning: "a .creds file that says who Coroom is to NATS; empty: the user in COROOM_NATS_URL, or none",
  },
  natsCa: {
    parse: text,
    fallback: "",
    meaning: "a file with the certificates (PEM) that NATS's own is to be signed by, over TLS only; empty: those that Node knows",
  },
  natsCert: {
    parse: text,
    fallback: "",
    meaning: "a file with the certificate (PEM) that Coroom shows NATS, where its servers ask for one; with its key in COROOM_NATS_KEY",
  },
  natsKey: { parse: text, fallback: "", meaning: "a file with the private key (PEM) of COROOM_NATS_CERT" },
  logPartitions: {
    parse: positiveInteger,
    fallback: 1,
    meaning: "streams that the log is spread over; fixed for the life of a deployment",
  },
  logReplicas: { parse: copies, fallback: 1, meaning: "copies of the log in a NATS cluster: 1, 3 or 5" },
  opsEventsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "events for operations that are kept; the oldest make room for new ones",
  },
  opsBytesMax: { parse: positiveInteger, fallback: 16 * 1024 ** 2, meaning: "bytes of the events kept for operations" },
  opsKeptMsMax: { parse: positiveInteger, fallback: 7 * 24 * 3_600_000, meaning: "how long events are kept for operations" },
  webhookUrls: {
    parse: webhookEndpoints,
    secret: true,
    fallback: [],
    meaning: "where events are delivered: an address for all tenants, or tenant=address, comma-separated; empty: nowhere",
  },
  logLevel: {
    parse: oneOf("debug", "info", "warn", "error", "silent"),
    fallback: "info",
    meaning: "what is logged: debug, info, warn, error or silent",
  },
  ...tracesSettings,
} as const satisfies Settings;

export type SharedConfig = Values<typeof sharedSettings>;

/** JetStream elects by majority: an even number keeps no more than the odd one below. */
function copies(raw: string): number {
  return Number(oneOf("1", "3", "5")(raw));
}

function environmentName(raw: string): string {
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(raw)) throw new SettingError("must be 1 to 32 letters, digits, _ or -");
  return raw;
}
