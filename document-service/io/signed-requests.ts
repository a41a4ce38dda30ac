/** Signs requests to an application as Standard Webhooks defines it: an id, a date, and an HMAC-SHA256 over both and the body. */

import { createHmac } from "node:crypto";

import { assert } from "../../shared/assert.ts";
import type { Clock } from "../../shared/time/clock.ts";

/** `secret`: `whsec_` and the key in base64. */
export function signedHeaders(
  secret: string | undefined,
  id: string,
  body: string,
  clock: Pick<Clock, "wallNow">,
): Readonly<Record<string, string>> {
  assert(secret !== undefined, "the settings refuse an endpoint without a secret"); // An empty key would sign for anybody.
  const timestamp = Math.floor(clock.wallNow() / 1000);
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return {
    "content-type": "application/json",
    "user-agent": "coroom",
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`,
  };
}
