/** Asks the application for its token. Whatever the application's function does becomes an answer, never an exception. */

import { assert } from "../../shared/assert.ts";
import type { ConnectionInput } from "./connection-messages.ts";

/**
 * A JWT, or a function that returns one. The client calls the function for each connection, and again before the token
 * expires.
 */
export type Token = string | (() => string | Promise<string>);

/** `fetch` and similar functions give the reason in the cause of the cause. */
const CAUSES_MAX = 3;

/**
 * The form of a signed JWT. The server would reject other text permanently, but a login page, or a proxy's "Unauthorized",
 * in place of the backend's answer is a temporary error.
 */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** JavaScript callers may pass anything. */
export function assertToken(token: unknown): void {
  assert(
    typeof token === "function" || (typeof token === "string" && token !== ""),
    "`token` must be a JWT, or a function that returns a JWT or a promise of one",
  );
}

/** The function is called each time. */
export function newToken(token: Token): string | Promise<string> {
  return typeof token === "string" ? token : token();
}

type TokenAnswer = Extract<ConnectionInput, { kind: "token" | "token-failed" }>;

/** `late`: rejects when the wait for the function is over. Undefined: there is no limit. */
export async function askToken(token: Token, late?: Promise<never>): Promise<TokenAnswer> {
  try {
    const answer = newToken(token);
    return checkedToken(await (late === undefined ? answer : Promise.race([answer, late])), token);
  } catch (cause) {
    return { kind: "token-failed", how: `failed: ${causesOf(cause).join(": ")}`, cause }; // The function may throw anything.
  }
}

/**
 * Calling the function again may help; for a fixed token only the server's refusal ends the client. A token from a file
 * or a shell often ends with a line break.
 */
function checkedToken(answer: unknown, given: Token): TokenAnswer {
  const token = typeof answer === "string" ? answer.trim() : "";
  if (JWT.test(token)) return { kind: "token", token };
  if (typeof given === "string") return { kind: "token", token: given };
  return { kind: "token-failed", how: `returned ${kindOf(answer)}: it must return a JWT`, cause: undefined };
}

/** The text itself is not shown, because it may be a token. */
function kindOf(answer: unknown): string {
  if (answer === null) return "null";
  if (typeof answer !== "string") return typeof answer;
  return answer === "" ? "an empty string" : "text that is no JWT, such as a page or the answer of a proxy";
}

function causesOf(thrown: unknown): string[] {
  const texts: string[] = [];
  for (let cause = thrown; cause !== undefined && cause !== null && texts.length < CAUSES_MAX;) {
    texts.push(cause instanceof Error ? textOf(cause) : textOfThrown(cause));
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return texts.length > 0 ? texts : [String(thrown)]; // The function threw null or undefined.
}

/** Some thrown values cannot be converted to a string. */
function textOfThrown(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  return "message" in thrown && typeof thrown.message === "string" ? thrown.message : Object.prototype.toString.call(thrown);
}

/** If no address of a host name answers, the error's own message is empty. */
function textOf(error: Error): string {
  return error.message || (error instanceof AggregateError ? error.errors.map(String).join("; ") : error.name);
}
