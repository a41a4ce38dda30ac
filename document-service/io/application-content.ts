/**
 * Asks the application for the first content of a room: a signed POST to the address that the operator has set. Only 204
 * means that there is no content. Any other answer, also 404, may come from a proxy of an application that is down, and
 * a room that opens empty by mistake never receives its content.
 */

import { randomUUID } from "node:crypto";

import { type RoomKey, roomOf, tenantOf } from "../../shared/ids.ts";
import { limitConcurrency } from "../../shared/limits/concurrency-limit.ts";
import { endpointFor, type WebhookEndpoint } from "../../shared/settings/webhook-endpoints.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { ApplicationAnswer } from "../ports.ts";
import { signedHeaders } from "./signed-requests.ts";

type ApplicationContentOptions = {
  readonly firstContentUrls: readonly WebhookEndpoint[];
  readonly webhookSecrets: ReadonlyMap<string, string>;
  readonly firstContentTimeoutMs: number;
  readonly documentBodyBytesMax: number;
  /** For each application. */
  readonly firstContentCallsMax: number;
};

/** Only gateways with other settings ask for such a room. It must not open empty. */
const NOT_SET: ApplicationAnswer = {
  kind: "failed",
  why: "COROOM_FIRST_CONTENT_URLS names no URL for this tenant: set it here as on gateways",
};
const NO_CONTENT = 204;
const OK = 200;

/** Never rejects. A slow application makes only its own rooms wait. */
export function applicationContent(
  options: ApplicationContentOptions,
  clock: Pick<Clock, "wallNow">,
): (room: RoomKey) => Promise<ApplicationAnswer> {
  const { firstContentUrls, firstContentCallsMax } = options;
  const calls = new Map(
    firstContentUrls.map((endpoint) => [
      endpoint.name,
      limitConcurrency(firstContentCallsMax, (room: RoomKey) => callApplication(endpoint, room, options, clock)),
    ]),
  );
  return (room) => {
    const endpoint = endpointFor(tenantOf(room), firstContentUrls);
    return endpoint === undefined ? Promise.resolve(NOT_SET) : calls.get(endpoint.name)!(room);
  };
}

async function callApplication(
  { name, url }: WebhookEndpoint,
  room: RoomKey,
  { webhookSecrets, firstContentTimeoutMs, documentBodyBytesMax }: ApplicationContentOptions,
  clock: Pick<Clock, "wallNow">,
): Promise<ApplicationAnswer> {
  const body = JSON.stringify({
    type: "document.requested",
    timestamp: new Date(clock.wallNow()).toISOString(),
    data: { tenant: tenantOf(room), room: roomOf(room) },
  });
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: signedHeaders(webhookSecrets.get(name), randomUUID(), body, clock),
      body,
      redirect: "manual",
      signal: AbortSignal.timeout(firstContentTimeoutMs),
    });
    if (response.status !== OK) {
      await response.body?.cancel();
      return response.status === NO_CONTENT ? { kind: "none" } : { kind: "failed", why: whyOf(response.status) };
    }
    const content = await bytesUpTo(response, documentBodyBytesMax);
    return content === undefined
      ? { kind: "failed", why: `its content is longer than ${documentBodyBytesMax} bytes (COROOM_DOCUMENT_BODY_BYTES_MAX)` }
      : { kind: "content", contentType: response.headers.get("content-type") ?? "", content };
  } catch (error) {
    // fetch throws these when the application does not answer, not in time, or not to the end.
    if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error;
    const isLate = error instanceof DOMException;
    return {
      kind: "failed",
      why: isLate ? `no answer within ${firstContentTimeoutMs} ms` : "it cannot be reached, or its answer broke off",
    };
  }
}

function whyOf(status: number): string {
  return status === 404
    ? "HTTP 404, which may come from a proxy: answer 204 for a room without content"
    : `HTTP ${status}: answer 200 with the content, or 204 for a room without content`;
}

/** Undefined: the body is longer. Compressed bodies count as they are read, uncompressed. */
async function bytesUpTo({ body }: Response, bytesMax: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) return undefined; // Leaving the loop cancels the rest.
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
