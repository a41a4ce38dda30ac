/** Where a request comes from: by the socket, or by what the balancer before it says. */

import type { HttpRequest, HttpResponse } from "uws-node20";

import { type ClientAddress, clientAddressOf } from "../../shared/client-address.ts";

/** `header`: in lower case; empty where no balancer is trusted. To be asked while the request lives. Undefined: this machine. */
export function addressOf(res: HttpResponse, req: HttpRequest, header: string): ClientAddress | undefined {
  const peer = new TextDecoder().decode(res.getRemoteAddressAsText());
  return clientAddressOf(peer, header === "" ? "" : lastLineOf(req, header));
}

/** A balancer may add a line of its own behind those that the client sent, as HAProxy does; `getHeader` gives the first. */
function lastLineOf(req: HttpRequest, header: string): string {
  let last = "";
  req.forEach((name, value) => {
    if (name === header) last = value;
  });
  return last;
}
