/** Where a request comes from: by the socket, or by what the balancer before it says. */

import type { HttpRequest, HttpResponse } from "uws-node20";

import { type ClientAddress, clientAddressOf } from "../sessions/client-address.ts";

/** `header`: empty where no balancer is trusted. To be asked while the request lives. Undefined: this machine. */
export function addressOf(res: HttpResponse, req: HttpRequest, header: string): ClientAddress | undefined {
  const peer = new TextDecoder().decode(res.getRemoteAddressAsText());
  return clientAddressOf(peer, header === "" ? "" : req.getHeader(header));
}
