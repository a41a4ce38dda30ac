/** TLS of the HTTP between tiers, as document services and leaderboards serve it. */

import { type Settings, text, type Values } from "./settings.ts";

export const internalTlsSettings = {
  internalCertFile: {
    parse: text,
    fallback: "",
    meaning:
      "File with the PEM certificate chain with which document services and leaderboards serve gateways over TLS. Empty: plain HTTP, or a proxy that terminates TLS.",
  },
  internalKeyFile: {
    parse: text,
    fallback: "",
    meaning: "File with the PEM private key of COROOM_INTERNAL_CERT_FILE, without a passphrase.",
  },
} as const satisfies Settings;

export type InternalTlsConfig = Values<typeof internalTlsSettings>;

/** Secrets of the HTTP between tiers, and of Prometheus there. */
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
      "Secret with which Prometheus reads /metrics of a gateway in production, and of document services and leaderboards, as a bearer token. Empty: only the health port shows metrics.",
  },
} as const satisfies Settings;
