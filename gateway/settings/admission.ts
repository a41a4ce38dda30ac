/** How many connections one gateway takes, and how fast. */

import { lowerCase, positiveInteger, type Settings, type Values, wholeNumber } from "../../shared/config.ts";

export const admissionSettings = {
  connectionsMax: { parse: positiveInteger, fallback: 50_000, meaning: "connections to one gateway; more are turned away with HTTP 503" },
  connectsPerSecondMax: {
    parse: positiveInteger,
    fallback: 500,
    meaning: "new connections to one gateway in a second; more wait for their turn",
  },
  connectQueueMax: {
    parse: wholeNumber,
    fallback: 1_000,
    meaning: "connections that wait for their turn; more are closed with a hint to come back later",
  },
  connectQueueBytesMax: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning:
      "bytes that all of them together may have said meanwhile, a frame 200 more than it has; whoever says more is closed with the same hint",
  },
  helloMsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "time a new connection has to say hello, and the gateway then has to check its token",
  },
  retryAfterMs: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "what clients are told to wait that are turned away or were too fast; each waits up to twice as long, at random",
  },
  clientAddressHeader: {
    parse: lowerCase,
    fallback: "",
    meaning:
      "header in which the balancer names the client's address as its last entry, such as x-forwarded-for; empty: the socket's own address. Set it only behind a balancer that sets it",
  },
} as const satisfies Settings;

export type AdmissionConfig = Values<typeof admissionSettings>;
