/** Conditional requests: whether a client has the current representation already (RFC 9110, 13.1.2). */

/**
 * `etag`: the tag of the current representation, without a comma. The comparison is weak, because proxies that compress an
 * answer make its tag weak. `*` matches any representation.
 */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  const opaque = opaqueTagOf(etag);
  return ifNoneMatch.split(",").some((tag) => tag.trim() === "*" || opaqueTagOf(tag.trim()) === opaque);
}

function opaqueTagOf(etag: string): string {
  return etag.replace(/^W\//, "");
}
