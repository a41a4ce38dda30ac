/** The collector of traces, and the share of edits that are traced. All roles need the same values. Otherwise traces lack hops. */

import { SettingError, type Settings, isDecodable } from "./settings.ts";

export const tracesSettings = {
  tracesUrl: {
    parse: tracesUrl,
    secret: true,
    fallback: "",
    meaning: "OTLP/HTTP endpoint for traces of edits, for example http://collector:4318 (without /v1/traces). Empty: tracing is off.",
    basic: true,
  },
  tracesShare: {
    parse: share,
    fallback: 0.01,
    meaning: "Fraction of edits that are traced, 0 to 1. Use the same value for all roles.",
  },
} as const satisfies Settings;

/** The path below the endpoint, as OpenTelemetry defines it. */
export const TRACES_PATH = "/v1/traces";

function tracesUrl(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  const isBase = url !== undefined && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "";
  if (!isBase || url.pathname.includes(TRACES_PATH) || ![url.username, url.password].every(isDecodable)) {
    throw new SettingError(
      "must be an address such as http://collector:4318, without /v1/traces, query or fragment. Percent-encode special characters in a password, for example @ as %40",
    );
  }
  return raw;
}

function share(raw: string): number {
  const value = Number(raw);
  if (!(value >= 0 && value <= 1)) throw new SettingError("must be a number from 0 to 1");
  return value;
}
