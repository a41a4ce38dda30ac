/** Calls a service of another tier for a client, and forwards its answer. The request carries the secret of the tiers and the tenant. */

import type { IncomingMessage } from "node:http";

import type { HttpAnswer } from "../../http/answers.ts";
import { forwardedAnswer, isAuthorizedUrl, NO_SUCH_PATH, type ServiceRequest } from "../../http/document-requests.ts";
import type { RouteRequest } from "../../http/requests.ts";
import type { ServiceDirectory } from "../nats/nats-services.ts";
import { piecesOf } from "./broken-answers.ts";

/** The types of node:http declare the status of an answer as optional, but every answer has one. */
const BROKEN_GATEWAY = 502;

/**
 * The answer of the first ready service. The list may still contain a service that has just died. Undefined: no service
 * answers. A call without a signal is never aborted.
 */
export async function callServices(
  services: ServiceDirectory,
  { path, tenant, headers = {}, method, body }: ServiceRequest,
  { signal }: Partial<Pick<RouteRequest, "signal">>,
  { internalSecret }: { internalSecret: string },
): Promise<HttpAnswer | undefined> {
  const sent = { ...headers, "x-coroom-internal": internalSecret, "x-coroom-tenant": tenant };
  let unready: HttpAnswer | undefined;
  await services.firstHeartbeat;
  for (const service of services.urls()) {
    const url = new URL(path, service);
    if (!isAuthorizedUrl(url, path)) return NO_SUCH_PATH;
    const answer = await services.ask(
      url,
      { method: method ?? "GET", headers: sent, tenant, ...(body === undefined ? {} : { body }) },
      signal,
    );
    if (answer === undefined) continue;
    if (answer.statusCode !== 503) return forward(answer);
    unready = { ...forward(answer), body: await textOf(answer) }; // Another service may be ready.
  }
  return unready;
}

function forward(answer: IncomingMessage): HttpAnswer {
  const { hasBody, ...head } = forwardedAnswer(answer.statusCode ?? BROKEN_GATEWAY, answer.headers);
  if (hasBody) return { ...head, body: answer };
  answer.resume(); // The connection becomes free when the answer is read to its end.
  return head;
}

/** Empty when the answer breaks off, because the status is enough. */
function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  answer.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  answer.on("error", () => {}); // The answer broke off.
  return new Promise((resolve) => answer.on("close", () => resolve(answer.complete ? Buffer.concat(chunks).toString() : "")));
}

/** Throws `BrokenAnswer` if the body breaks off. */
export async function bytesOf(body: NonNullable<HttpAnswer["body"]>): Promise<Uint8Array> {
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of piecesOf(body)) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}
