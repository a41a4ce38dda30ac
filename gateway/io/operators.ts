/** Who runs the system: whoever shows the secret that the tiers share. No token makes anybody that, for tokens are its tenants'. */

import { createHash, timingSafeEqual } from "node:crypto";

import { errorAnswer, type HttpAnswer, type HttpQuestion } from "./http-routes.ts";

const REFUSED = errorAnswer(401, "not-an-operator", "this is for operators: give COROOM_INTERNAL_SECRET as Authorization: Bearer");

/** Never true while no secret is set. */
export function isOperator({ header }: HttpQuestion, { internalSecret }: { internalSecret: string }): boolean {
  const shown = /^Bearer (.+)$/i.exec(header("authorization"))?.[1] ?? "";
  return internalSecret !== "" && timingSafeEqual(digest(shown), digest(internalSecret)); // Digests: of one length, whatever was shown.
}

export function forOperators(answer: (question: HttpQuestion) => HttpAnswer | Promise<HttpAnswer>, options: { internalSecret: string }): (question: HttpQuestion) => HttpAnswer | Promise<HttpAnswer> {
  return (question) => (isOperator(question, options) ? answer(question) : REFUSED);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
