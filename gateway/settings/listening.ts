/** Settings of the gateway's listener: its address, the allowed origins, and how it stops. */

import { flag, port, positiveInteger, type Settings, text, wholeNumber } from "../../shared/settings/settings.ts";
import { origins } from "../../shared/settings/origins.ts";

/** Maximum wait for unconfirmed edits of closed pages, which no client would send again. A lost owner is replaced within this time. */
export const SETTLE_MS_MAX = 4_000;

export const listeningSettings = {
  host: { parse: text, fallback: "127.0.0.1", meaning: "Address to listen on; 0.0.0.0 listens on every network.", basic: true },
  port: { parse: port, fallback: 8080, meaning: "Port for WebSocket and HTTP; 0 chooses a free port.", basic: true },
  tlsCertFile: {
    parse: text,
    fallback: "",
    meaning: "File with the PEM certificate chain for TLS. Empty: plain HTTP, for use behind a balancer that terminates TLS.",
    basic: true,
  },
  tlsKeyFile: {
    parse: text,
    fallback: "",
    meaning: "File with the PEM private key of COROOM_TLS_CERT_FILE, without a passphrase.",
    basic: true,
  },
  production: {
    parse: flag,
    fallback: false,
    meaning: "Production mode: Coroom does not start without a token key, allowed origins and an internal secret.",
    basic: true,
  },
  allowedOrigins: {
    parse: origins,
    fallback: [],
    meaning: "Origins whose pages may connect, comma-separated, for example https://app.example. Empty: any origin, in development only.",
    basic: true,
  },
  staticDir: { parse: text, fallback: "", meaning: "Folder of files served at /. Empty: none." },
  drainMsMax: {
    parse: wholeNumber,
    fallback: 30_000,
    meaning: "Milliseconds that clients have to move to another gateway before this one stops; 0 closes them immediately.",
    basic: true,
  },
  backboneLossMsMax: {
    parse: positiveInteger,
    fallback: 30_000,
    meaning: "Milliseconds without NATS after which clients are sent to another gateway.",
  },
} as const satisfies Settings;
