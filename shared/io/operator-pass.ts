/**
 * What an operator shows a gateway instead of the secret that the tiers share: made of it, good for a few hours, and good
 * for nothing else. So a browser never holds the secret.
 *
 *   operator.<seconds since the Unix epoch when it expires>.<HMAC-SHA-256 of what stands before the last dot, base64url>
 */

import { createHmac, timingSafeEqual } from "node:crypto";

import type { UnixMillis } from "../ids.ts";

const SHAPE = /^(operator\.(\d{1,12}))\.([A-Za-z0-9_-]{43})$/;

export function makeOperatorPass(internalSecret: string, expiresAt: UnixMillis): string {
  const head = `operator.${Math.floor(expiresAt / 1_000)}`;
  return `${head}.${seal(head, internalSecret).toString("base64url")}`;
}

/** Never true for an empty secret: anybody could make a pass of it. */
export function isOperatorPass(text: string, internalSecret: string, now: UnixMillis): boolean {
  const [, head = "", expires = "0", shown = ""] = SHAPE.exec(text) ?? [];
  return (
    internalSecret !== "" &&
    head !== "" &&
    Number(expires) * 1_000 > now &&
    timingSafeEqual(seal(head, internalSecret), Buffer.from(shown, "base64url"))
  );
}

/** Named, so that nothing else that is ever made of the secret can be taken for a pass. */
function seal(head: string, internalSecret: string): Buffer {
  return createHmac("sha256", internalSecret).update(`coroom operator pass\n${head}`).digest();
}
