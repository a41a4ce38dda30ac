/** Where a gateway is reached, by whose pages, and how it goes. */

import { flag, port, positiveInteger, type Settings, text, wholeNumber } from "../../shared/config.ts";
import { origins } from "../../shared/origins.ts";

export const listeningSettings = {
  host: { parse: text, fallback: "127.0.0.1", meaning: "address to listen on; 0.0.0.0 for every network" },
  port: { parse: port, fallback: 8080, meaning: "port for WebSocket and HTTP; 0: any free one" },
  tlsCertFile: {
    parse: text,
    fallback: "",
    meaning:
      "a file with the certificate (PEM, with those between it and its root) that WebSocket and HTTP are served over TLS with; empty: plain, for a balancer that ends TLS",
  },
  tlsKeyFile: { parse: text, fallback: "", meaning: "a file with its private key (PEM, without a passphrase)" },
  production: {
    parse: flag,
    fallback: false,
    meaning: "refuse to start with anything open: a token key and the allowed origins must be given",
  },
  allowedOrigins: {
    parse: origins,
    fallback: [],
    meaning: "origins whose pages may connect, such as https://app.example; empty: any, in development only",
  },
  staticDir: { parse: text, fallback: "", meaning: "folder of files served at /; empty: none" },
  drainMsMax: {
    parse: wholeNumber,
    fallback: 30_000,
    meaning: "time that clients have to move to another gateway before this one stops; 0: none, they are closed at once",
  },
  backboneLossMsMax: {
    parse: positiveInteger,
    fallback: 30_000,
    meaning: "after so long without NATS, clients are sent to another gateway",
  },
} as const satisfies Settings;
