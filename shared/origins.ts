/** Which pages may talk to Coroom. A request without an origin comes from no page: its token is its pass. */

export function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  return origin === "" || allowed.length === 0 || allowed.includes(origin);
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
    vary: "origin, accept-encoding",
  };
}
