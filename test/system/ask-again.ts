/** Repeats a request that is answered with "try again later", like a reader does. */

import { eventually } from "./eventually.ts";

/** A room whose document is still being loaded, too many readers at once, or no service that is heard of yet. */
const NOT_JUST_NOW = new Set(["loading", "busy", "unavailable"]);
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
