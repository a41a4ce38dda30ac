/** Settings for slow clients: how far a client may fall behind, and what a gateway leaves out under pressure. */

import { constant, positiveInteger, type Settings, wholeNumber } from "../../shared/settings/settings.ts";

export const deliverySettings = {
  outboundBytesMax: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning: "Maximum bytes waiting for one client. Beyond it the connection is closed.",
  },
  behindBytesMax: {
    parse: positiveInteger,
    fallback: 65_536,
    meaning: "Bytes of unread data above which a client receives no presence. It receives a presence snapshot once it has read them.",
  },
  slowBytesMax: {
    parse: positiveInteger,
    fallback: 1_048_576,
    meaning:
      "Bytes of unread data above which a client has one second to catch up. It is then closed, and resumes from its last seq after a reconnect.",
  },
  slowMsMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning:
      "Maximum age, in milliseconds, of a client's oldest unread data. Beyond it the client is closed, unless it reads more than it is sent.",
  },
  closingMsMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning: "Milliseconds that a closed client has to read its remaining data and the close reason. The socket is then cut.",
  },
  outboundP99MsMax: {
    parse: wholeNumber,
    fallback: 500,
    meaning:
      "Outbound delay (p99 over 5 s, in milliseconds) above which /readyz reports unready. It reports ready after 10 s below half of it; 0 disables it.",
  },
  shedDelayMsMin: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "Event loop delay, in milliseconds, at which a gateway starts to shed presence.",
  },
  shedOutboundBytesMin: {
    parse: positiveInteger,
    fallback: 268_435_456,
    meaning: "Unread bytes of all clients at which a gateway starts to shed presence.",
  },
  shedNatsLagMsMin: {
    parse: positiveInteger,
    fallback: 250,
    meaning: "NATS round trip, in milliseconds, at which a gateway starts to shed presence.",
  },
  /** Milliseconds of pressure before the first shed level. Short peaks, such as mass joins, do not shed. */
  shedPressureMs: constant(500),
  /** Milliseconds below half of all shed thresholds after which the shed level falls by one. */
  shedCalmMs: constant(5_000),
} as const satisfies Settings;
