/** Limits of all HTTP requests. */

import { positiveInteger, type Settings, text, type Values } from "../../shared/settings/settings.ts";
import { internalSecretSettings } from "../../shared/settings/internal-tls-settings.ts";
import type { AdmissionConfig } from "./admission.ts";

export const httpSettings = {
  ...internalSecretSettings,
  operatorSecret: {
    parse: text,
    secret: true,
    fallback: "",
    meaning: "Secret of operators for the HTTP API. Operator passes for the console are signed with it.",
    basic: true,
  },
  internalCaFile: {
    parse: text,
    fallback: "",
    meaning:
      "File with the PEM certificates that sign the certificates of document services and leaderboards. Empty: the certificate authorities that Node trusts.",
  },
  answerStallMsMax: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "Milliseconds without progress after which an HTTP answer is aborted.",
  },
  bodiesBytesMax: {
    parse: positiveInteger,
    fallback: 64 * 1024 ** 2,
    meaning:
      "Maximum bytes of all HTTP request bodies in memory. Beyond it, the slowest upload is refused with 503. At least COROOM_EDIT_BYTES_MAX.",
  },
} as const satisfies Settings;

/** As many may ask as there may be connections. */
export type HttpConfig = Values<typeof httpSettings> & Pick<AdmissionConfig, "connectionsMax">;
