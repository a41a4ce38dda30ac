/** Repeats a request while the answer is "try again later", as a reader does. */

import { eventually } from "./eventually.ts";

/**
 * Errors while a room's document is loaded, while there are too many readers, and before the first heartbeat of a
 * document service.
 */
const NOT_JUST_NOW = new Set(["loading", "stalled", "busy", "unavailable"]);
const PATIENCE_MS = 20_000;

export async function askAgain<Answer extends { readonly status: number; readonly json: { readonly error?: string } }>(
  what: string,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  let answer: Answer | undefined;
  const isAnswered = async (): Promise<boolean> => {
    answer = await ask();
    return answer.status !== 503 || !NOT_JUST_NOW.has(answer.json.error ?? "");
  };
  await eventually(`${what} is answered`, isAnswered, PATIENCE_MS);
  return answer!;
}
