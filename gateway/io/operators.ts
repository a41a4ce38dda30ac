/** Who runs the system: whoever shows the secret that the tiers share, or a pass made of it. No token makes anybody that, for tokens are its tenants'. */

import { createHash, timingSafeEqual } from "node:crypto";

import { isOperatorPass } from "../../shared/io/operator-pass.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion } from "./http-routes.ts";

export const NOT_AN_OPERATOR = errorAnswer(
  401,
  "not-an-operator",
  "this is for operators: give COROOM_INTERNAL_SECRET, or a pass made of it (coroom ops pass), as Authorization: Bearer",
);

/** Never true while no secret is set. */
export function isOperator({ header }: HttpQuestion, { internalSecret }: { internalSecret: string }): boolean {
  const shown = /^Bearer (.+)$/i.exec(header("authorization"))?.[1] ?? "";
  if (internalSecret === "") return false;
  return timingSafeEqual(digest(shown), digest(internalSecret)) || isOperatorPass(shown, internalSecret, systemClock.wallNow()); // Digests: of one length, whatever was shown.
}

export function forOperators(
  answer: (question: HttpQuestion) => HttpAnswer | Promise<HttpAnswer>,
  options: { internalSecret: string },
): (question: HttpQuestion) => HttpAnswer | Promise<HttpAnswer> {
  return (question) => (isOperator(question, options) ? answer(question) : NOT_AN_OPERATOR);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
