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
