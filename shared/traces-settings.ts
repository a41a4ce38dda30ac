/** Where traces of edits go, and of how many edits. The same for all roles, or a trace lacks the hops of those that trace less. */

import { SettingError, type Settings, type Values } from "./config.ts";
import { isDecodable } from "./decodable.ts";

export const tracesSettings = {
  tracesUrl: {
    parse: tracesUrl,
    secret: true,
    fallback: "",
    meaning:
      "where traces of edits are sent: an OTLP endpoint over HTTP such as http://collector:4318, without /v1/traces; with a user: http://user:password@host; empty: nowhere, nothing is traced",
  },
  tracesShare: {
    parse: share,
    fallback: 0.01,
    meaning: "of which part of the edits, 0 to 1, where COROOM_TRACES_URL is given; the same for all roles",
  },
} as const satisfies Settings;

export type TracesConfig = Values<typeof tracesSettings>;

/** Below the endpoint, as OpenTelemetry has it. */
export const TRACES_PATH = "/v1/traces";

function tracesUrl(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  const isBase = url !== undefined && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "";
  if (!isBase || url.pathname.includes(TRACES_PATH) || ![url.username, url.password].every(isDecodable)) {
    throw new SettingError(
      "must be an address such as http://collector:4318, without /v1/traces, query or fragment; what is special in a password is written as in any URL, @ as %40",
    );
  }
  return raw;
}

function share(raw: string): number {
  const value = Number(raw);
  if (!(value >= 0 && value <= 1)) throw new SettingError("must be a number from 0 to 1");
  return value;
}
