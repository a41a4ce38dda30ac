/**
 * An operator sends this pass to a gateway instead of a secret. The pass is derived from the secret and valid for a few
 * hours, for this purpose only. So a browser never holds the secret.
 *
 *   operator.<seconds since the Unix epoch when it expires>.<HMAC-SHA-256 of the text before the last dot, base64url>
 */

import { createHmac, timingSafeEqual } from "node:crypto";

import type { UnixMillis } from "../ids.ts";

const SHAPE = /^(operator\.(\d{1,12}))\.([A-Za-z0-9_-]{43})$/;

export function makeOperatorPass(operatorSecret: string, expiresAt: UnixMillis): string {
  const head = `operator.${Math.floor(expiresAt / 1_000)}`;
  return `${head}.${seal(head, operatorSecret).toString("base64url")}`;
}

/** Always false for an empty secret, because anybody could derive a pass from it. */
export function isOperatorPass(text: string, operatorSecret: string, now: UnixMillis): boolean {
  const [, head = "", expires = "0", shown = ""] = SHAPE.exec(text) ?? [];
  return (
    operatorSecret !== "" &&
    head !== "" &&
    Number(expires) * 1_000 > now &&
    timingSafeEqual(seal(head, operatorSecret), Buffer.from(shown, "base64url"))
  );
}

/** The name of the purpose, so that no other value derived from the secret is accepted as a pass. */
function seal(head: string, operatorSecret: string): Buffer {
  return createHmac("sha256", operatorSecret).update(`coroom operator pass\n${head}`).digest();
}
