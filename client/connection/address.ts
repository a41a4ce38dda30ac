/** Where the server is: one URL as the application gives it, as the two that the client uses. */

import { assert } from "../../shared/assert.ts";

export type Address = { readonly socket: string; readonly http: string };

const SCHEMES: Readonly<Record<string, { socket: string; http: string }>> = {
  "ws:": { socket: "ws:", http: "http:" },
  "http:": { socket: "ws:", http: "http:" },
  "wss:": { socket: "wss:", http: "https:" },
  "https:": { socket: "wss:", http: "https:" },
};

/** `ws://host:port` or `wss:`, `http:`, `https:`; a path is kept, for a server behind a proxy. */
export function addressOf(url: string): Address {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const schemes = parsed && SCHEMES[parsed.protocol];
  assert(parsed !== undefined && schemes !== undefined, `url must look like ws://host:port or wss://host, not ${JSON.stringify(url)}`);
  const rest = `//${parsed.host}${parsed.pathname.replace(/\/+$/, "")}`;
  return { socket: `${schemes.socket}${rest}/`, http: `${schemes.http}${rest}` };
}

export function snapshotUrl(address: Address, room: string): string {
  return `${address.http}/v1/rooms/${encodeURIComponent(room)}/snapshot`;
}
