/**
 * Which web pages may connect to Coroom. A request without an origin does not come from a page: its token authorises
 * it.
 */

import { list, SettingError } from "./settings.ts";

export function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  return origin === "" || allowed.length === 0 || allowed.includes(origin);
}

/**
 * Parses a list of origins, each as browsers send it. Throws a SettingError for anything that no browser sends, such
 * as an address with a path or a pattern.
 */
export function origins(raw: string): readonly string[] {
  return list(raw).map((entry) => {
    const url = URL.canParse(entry) ? new URL(entry) : undefined;
    if (url === undefined || entry.includes("*"))
      throw new SettingError("must be origins such as https://app.example, each with its scheme and without patterns such as *");
    // The scheme belongs to an application, such as a desktop app, so its form is not checked.
    if (!/^https?:$/.test(url.protocol)) return entry;
    if (url.href !== `${url.origin}/`) throw new SettingError(`must be origins, with no path or user: write ${url.origin}`);
    return url.origin;
  });
}

/** For HTTP answers to pages of other origins. */
export function corsHeaders(origin: string, allowed: readonly string[]): Record<string, string> {
  if (origin === "" || !isAllowedOrigin(origin, allowed)) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-headers": "authorization, content-type, idempotency-key, if-none-match",
    "access-control-allow-methods": "GET, POST, PUT, DELETE",
    "access-control-expose-headers": "etag, retry-after, x-coroom-seq, x-coroom-epoch, x-coroom-last-edit",
    "access-control-max-age": "600",
    "vary": "origin, accept-encoding, authorization",
  };
}
