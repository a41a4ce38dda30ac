/** Settings for the number of connections of one gateway, and the rate at which it accepts them. */

import { lowerCase, positiveInteger, type Settings, type Values, wholeNumber } from "../../shared/settings/settings.ts";

export const admissionSettings = {
  connectionsMax: {
    parse: positiveInteger,
    fallback: 50_000,
    meaning: "Maximum number of WebSocket connections per gateway. Further connections get HTTP 503.",
    basic: true,
  },
  connectsPerSecondMax: {
    parse: positiveInteger,
    fallback: 500,
    meaning: "Maximum number of new connections per second and gateway. Others wait in the admission queue.",
  },
  connectQueueMax: {
    parse: wholeNumber,
    fallback: 1_000,
    meaning: "Maximum number of connections in the admission queue. Further ones are closed with a retry hint.",
  },
  connectQueueBytesMax: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning: "Maximum bytes received from all connections in the admission queue. The sender beyond it is closed with a retry hint.",
  },
  helloMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Maximum milliseconds until a new connection sends HELLO, and again until the gateway has verified its token.",
  },
  retryAfterMs: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "Milliseconds that rejected clients are asked to wait. Each client waits up to twice as long, chosen at random.",
  },
  clientAddressHeader: {
    parse: lowerCase,
    fallback: "",
    meaning:
      "Header whose last entry is the client's address, for example x-forwarded-for. Set it only behind a balancer that sets it. Empty: the socket's address.",
    basic: true,
  },
} as const satisfies Settings;

export type AdmissionConfig = Values<typeof admissionSettings>;
