/**
 * A log for events of single rooms, of which a process has thousands: when a room server or NATS is lost, each room
 * would write the same sentence, and lines are written synchronously. Errors are never left out.
 */

import type { Clock } from "../time/clock.ts";
import type { Millis } from "../ids.ts";
import type { Log } from "./log.ts";

/** Maximum number of lines per second with the same sentence. */
const LINES_PER_SECOND_MAX = 10;
const SECOND_MS = 1_000;

/** `leftOut`: number of lines that were not written since the last one. */
type Sentence = { begunAt: Millis; lines: number; leftOut: number };

/** The next line with the same sentence contains the number of lines before it that were left out. Call with constant sentences. */
export function limitedLog(log: Log, clock: Clock): Log {
  const sentences = new Map<string, Sentence>();
  const write =
    (level: "debug" | "info" | "warn") =>
    (facts: object, text: string): void => {
      const now = clock.now();
      const sentence = sentences.get(text) ?? { begunAt: now, lines: 0, leftOut: 0 };
      sentences.set(text, sentence);
      if (now - sentence.begunAt >= SECOND_MS) Object.assign(sentence, { begunAt: now, lines: 0 });
      if (sentence.lines >= LINES_PER_SECOND_MAX) return void (sentence.leftOut += 1);
      sentence.lines += 1;
      log[level](sentence.leftOut === 0 ? facts : { ...facts, leftOut: sentence.leftOut }, text);
      sentence.leftOut = 0;
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: (facts, text) => log.error(facts, text) };
}
