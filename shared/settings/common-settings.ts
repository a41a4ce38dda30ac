/** The settings that every role reads. Settings of one role are declared in its tier. */

import { oneOf, positiveInteger, type Settings, SettingError, text, type Values, wholeNumber } from "./settings.ts";
import { tracesSettings } from "./traces-settings.ts";
import { webhookEndpoints } from "./webhook-endpoints.ts";

export const sharedSettings = {
  environment: {
    parse: environmentName,
    fallback: "development",
    meaning: "Prefix of every NATS subject, stream, bucket and Redis key, for example production or staging.",
    basic: true,
  },
  natsUrl: {
    parse: text,
    secret: true,
    fallback: "nats://127.0.0.1:4222",
    meaning:
      "NATS servers, comma-separated, for example nats://user:password@host or tls://host. If it is not set, the role engines starts a local nats-server.",
    basic: true,
  },
  natsCredentials: {
    parse: text,
    fallback: "",
    meaning: "File with NATS credentials (.creds). Empty: the user in COROOM_NATS_URL, if any.",
    basic: true,
  },
  natsCa: {
    parse: text,
    fallback: "",
    meaning:
      "File with the PEM certificates that sign the NATS servers' certificates. Empty: the certificate authorities that Node trusts.",
    basic: true,
  },
  natsCert: {
    parse: text,
    fallback: "",
    meaning: "File with the PEM client certificate for NATS servers that require one. Set COROOM_NATS_KEY as well.",
  },
  natsKey: { parse: text, fallback: "", meaning: "File with the PEM private key that belongs to COROOM_NATS_CERT." },
  logPartitions: {
    parse: positiveInteger,
    fallback: 1,
    meaning:
      "Number of streams that the log is divided into. After the first start only coroom split-log changes it (docs/operations/partitions.md).",
    basic: true,
  },
  logReplicas: { parse: copies, fallback: 1, meaning: "Copies of the log in a NATS cluster: 1, 3 or 5.", basic: true },
  logBytesMax: {
    parse: wholeNumber,
    fallback: 0,
    meaning:
      "Maximum bytes of one copy of the log, all partitions together; further edits are refused. At most half of the disk: snapshots need space, and without them the log is not trimmed. 0: half of what nats-server can reserve, at most 32 GiB, chosen at the first start.",
    basic: true,
  },
  opsEventsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Maximum number of stored operations events. The oldest events are removed first.",
  },
  opsBytesMax: { parse: positiveInteger, fallback: 16 * 1024 ** 2, meaning: "Maximum size of stored operations events in bytes." },
  opsKeptMsMax: { parse: positiveInteger, fallback: 7 * 24 * 3_600_000, meaning: "Milliseconds that operations events are stored." },
  webhookUrls: {
    parse: webhookEndpoints,
    secret: true,
    fallback: [],
    meaning: "Webhook endpoints, comma-separated: a URL for all tenants, or tenant=URL. Empty: webhooks are off.",
    basic: true,
  },
  firstContentUrls: {
    parse: webhookEndpoints,
    secret: true,
    fallback: [],
    meaning:
      "URLs at which the application gives the first content of a room, comma-separated: a URL for all tenants, or tenant=URL. COROOM_WEBHOOK_SECRETS signs the requests. Empty: rooms start empty.",
  },
  logLevel: {
    parse: oneOf("debug", "info", "warn", "error", "silent"),
    fallback: "info",
    meaning: "Minimum level of log messages: debug, info, warn, error or silent.",
    basic: true,
  },
  ...tracesSettings,
} as const satisfies Settings;

export type SharedConfig = Values<typeof sharedSettings>;

/** JetStream elects by majority, so an even number survives no more failures than the next lower odd number. */
function copies(raw: string): number {
  return Number(oneOf("1", "3", "5")(raw));
}

function environmentName(raw: string): string {
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(raw)) throw new SettingError("must be 1 to 32 letters, digits, _ or -");
  return raw;
}
