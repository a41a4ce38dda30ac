/** What all that is asked over HTTP keeps to. */

import { positiveInteger, type Settings, text, type Values } from "../../shared/config.ts";
import type { AdmissionConfig } from "./admission.ts";

export const httpSettings = {
  internalSecret: {
    parse: text,
    secret: true,
    fallback: "",
    meaning: "what the tiers show each other over HTTP; the same for all of them",
  },
  answerStallMsMax: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "an answer over HTTP of which nothing was taken for so long is given up",
  },
  bodiesBytesMax: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning:
      "bytes of the bodies of all requests that are being read or answered, together: they are read before it is known whose they are; over it, the request that has been coming for the longest is refused with 503 and comes again; at least COROOM_EDIT_BYTES_MAX",
  },
} as const satisfies Settings;

/** As many may ask as there may be connections. */
export type HttpConfig = Values<typeof httpSettings> & Pick<AdmissionConfig, "connectionsMax">;
