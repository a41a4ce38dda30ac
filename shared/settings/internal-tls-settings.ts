/** TLS settings of the HTTP servers of document services and leaderboards. */

import { type Settings, text, type Values } from "./settings.ts";

export const internalTlsSettings = {
  internalCertFile: {
    parse: text,
    fallback: "",
    meaning:
      "File with the PEM certificate chain of document services and leaderboards, which gateways reach over TLS. Empty: plain HTTP, or a proxy terminates TLS.",
  },
  internalKeyFile: {
    parse: text,
    fallback: "",
    meaning: "File with the PEM private key of COROOM_INTERNAL_CERT_FILE, without a passphrase.",
  },
} as const satisfies Settings;

export type InternalTlsConfig = Values<typeof internalTlsSettings>;

/** Secrets of the HTTP between tiers, and of Prometheus for these servers. */
export const internalSecretSettings = {
  internalSecret: {
    parse: text,
    secret: true,
    fallback: "",
    meaning: "Secret for HTTP requests between Coroom's processes. Use the same value everywhere.",
    basic: true,
  },
  metricsSecret: {
    parse: text,
    secret: true,
    fallback: "",
    meaning:
      "Bearer token with which Prometheus reads /metrics of document services, leaderboards and, in production, gateways. Empty: only the health port serves metrics.",
  },
} as const satisfies Settings;
