/** Addresses of links and images that other people wrote. A page that shows the export must not run code by them. */

const LINK_SCHEMES: ReadonlySet<string> = new Set(["http", "https", "mailto", "tel"]);
const IMAGE_SCHEMES: ReadonlySet<string> = new Set(["http", "https"]);
/** No SVG: as a document of its own it may contain scripts. */
const IMAGE_DATA = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]*$/;
/** Browsers ignore these in a scheme. */
const IGNORED = /[\p{Cc}\p{Z}]/gu;

/** Undefined: the address is left out, and its text remains. */
export function safeLink(address: unknown): string | undefined {
  return safe(address, LINK_SCHEMES);
}

export function safeImage(address: unknown): string | undefined {
  return typeof address === "string" && IMAGE_DATA.test(address) ? address : safe(address, IMAGE_SCHEMES);
}

/** An address without a scheme is relative to the page that shows it. */
function safe(address: unknown, schemes: ReadonlySet<string>): string | undefined {
  if (typeof address !== "string") return undefined;
  const scheme = /^[^/?#]*?:/.exec(address.replaceAll(IGNORED, ""))?.[0].slice(0, -1).toLowerCase();
  return scheme === undefined || schemes.has(scheme) ? address.replaceAll(/\p{Cc}/gu, "").trim() : undefined;
}
