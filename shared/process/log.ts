/** The log as the tiers' hosts see it: an event's facts, then one sentence. `shared/io/pino-log.ts` is the real one. */
export interface Log {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
}
