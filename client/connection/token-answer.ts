/** What an application gives for a token, asked for it: its function may answer, fail and throw as it likes. */

import { assert } from "../../shared/assert.ts";
import type { ConnectionInput } from "./connection-messages.ts";

/** A text, or a function that is asked each time a connection is made, and again before its token expires. */
export type Token = string | (() => string | Promise<string>);

/** `fetch` and its like tell what went wrong in the cause of the cause. */
const CAUSES_TOLD = 3;

/** From JavaScript anything may come. */
export function assertToken(token: unknown): void {
  assert(
    typeof token === "function" || (typeof token === "string" && token !== ""),
    "`token` must be the JWT itself, or a function that returns it or a promise of it",
  );
}

/** What its function answered. */
export function tokenInput(answer: unknown): ConnectionInput {
  if (typeof answer === "string" && answer !== "") return { kind: "token", token: answer };
  const how = `returned no text, but ${answer === "" ? "an empty one" : answer === null ? "null" : typeof answer}: it must give the JWT itself`;
  return { kind: "token-failed", how, cause: undefined };
}

/** What its function threw. */
export function tokenFailed(cause: unknown): ConnectionInput {
  return { kind: "token-failed", how: `failed: ${causesOf(cause).join(": ")}`, cause };
}

function causesOf(thrown: unknown): string[] {
  const said: string[] = [];
  for (let cause = thrown; cause !== undefined && cause !== null && said.length < CAUSES_TOLD;) {
    said.push(cause instanceof Error ? textOf(cause) : textOfThrown(cause));
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return said.length > 0 ? said : [String(thrown)]; // null or undefined
}

/** Not all that may be thrown can be made a text of. */
function textOfThrown(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  return "message" in thrown && typeof thrown.message === "string" ? thrown.message : Object.prototype.toString.call(thrown);
}

/** Where a name leads to several addresses, none of which answers, the error itself says nothing. */
function textOf(error: Error): string {
  return error.message || (error instanceof AggregateError ? error.errors.map(String).join("; ") : error.name);
}
