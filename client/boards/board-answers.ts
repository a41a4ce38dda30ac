/** Errors in the server's answers about boards. `leaderboard/openapi.json` lists their codes. */

import type { JsonAnswer } from "../ports.ts";

/** Codes for a window without points. */
const NOTHING_COUNTED: readonly unknown[] = ["unknown-room", "unknown-window"];

/** The window has no points. */
export function isNothingCounted(answer: JsonAnswer): boolean {
  return answer.status === 404 && NOTHING_COUNTED.includes(errorOf(answer));
}

/** The code of the error. If it is no string, the answer is not from Coroom. */
export function errorOf({ body }: JsonAnswer): unknown {
  return ((body ?? {}) as { error?: unknown }).error;
}

/** The error for the application, with the server's message. */
export function unreadableBoard({ status, body }: JsonAnswer): Error {
  const { message } = (body ?? {}) as { message?: unknown };
  return new Error(`cannot read the board: ${typeof message === "string" ? message : "the answer is not from Coroom"} (HTTP ${status})`);
}
