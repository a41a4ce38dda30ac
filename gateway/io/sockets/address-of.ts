/** The client's address: the address of the socket's peer, or the address that a trusted balancer reports. */

import type { HttpRequest, HttpResponse } from "uWebSockets.js-glibc-2.36";

import { type ClientAddress, clientAddressOf } from "../../../shared/limits/client-address.ts";

/**
 * `header` is in lower case, and empty when no balancer is trusted. Call this during the handler, while uWebSockets.js
 * keeps the request. Undefined: a client on this machine.
 */
export function addressOf(res: HttpResponse, req: HttpRequest, header: string): ClientAddress | undefined {
  const peer = new TextDecoder().decode(res.getRemoteAddressAsText());
  return clientAddressOf(peer, header === "" ? "" : lastLineOf(req, header));
}

/**
 * A balancer such as HAProxy may append its own header after the client's. `getHeader` returns the first, so this takes
 * the last.
 */
function lastLineOf(req: HttpRequest, header: string): string {
  let last = "";
  req.forEach((name, value) => {
    if (name === header) last = value;
  });
  return last;
}
