/** However many want to know the same: asked once, and told to all who ask within the next moments. */

import type { Clock } from "../../shared/clock.ts";

export function askedLately<Answer>(ask: () => Promise<Answer>, keptMs: number, clock: Clock): () => Promise<Answer> {
  let kept: Promise<Answer> | undefined;
  const forget = (asked: Promise<Answer>): void => {
    if (kept === asked) kept = undefined;
  };
  return () => {
    if (kept !== undefined) return kept;
    const asked = ask();
    kept = asked;
    asked.then(
      () => clock.after(keptMs, () => forget(asked)),
      () => forget(asked),
    );
    return asked;
  };
}
