/** How far a client may fall behind what it is sent, and what a gateway leaves out under pressure. */

import { positiveInteger, type Settings, wholeNumber } from "../../shared/config.ts";

export const deliverySettings = {
  outboundBytesMax: {
    parse: positiveInteger,
    fallback: 16_777_216,
    meaning: "bytes waiting for one client at most; past it the connection is cut",
  },
  behindBytesMax: {
    parse: positiveInteger,
    fallback: 65_536,
    meaning: "a client so many bytes behind is told of no presence until it has taken them; then of all there is",
  },
  slowBytesMax: {
    parse: positiveInteger,
    fallback: 1_048_576,
    meaning: "a client so many bytes behind and not catching up within a second is closed, to resume from its last seq",
  },
  slowMsMax: { parse: positiveInteger, fallback: 1_000, meaning: "so is one that has not taken what it was sent so long ago" },
  closingMsMax: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning:
      "a client that is closed and has not taken all that it was sent has so long for that and then hears why it is closed; else its line is cut, and what waits for it is let go",
  },
  outboundP99MsMax: {
    parse: wholeNumber,
    fallback: 500,
    meaning:
      "where what is sent reaches a hundredth of the clients so late, for five seconds, /readyz says so until it is half of that for ten: new clients go elsewhere. 0: never",
  },
  shedDelayMsMin: { parse: positiveInteger, fallback: 100, meaning: "an event loop so late leaves out presence, step by step" },
  shedOutboundBytesMin: {
    parse: positiveInteger,
    fallback: 268_435_456,
    meaning: "so many bytes that clients have not read leave out presence, step by step",
  },
  shedNatsLagMsMin: { parse: positiveInteger, fallback: 250, meaning: "a NATS so slow leaves out presence, step by step" },
  shedPressureMs: {
    parse: wholeNumber,
    fallback: 500,
    meaning: "any of these for so long leaves out the first: a crowd that comes in is over sooner",
  },
  shedCalmMs: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "calm for so long, with less than half of all these, takes back one step",
  },
} as const satisfies Settings;
