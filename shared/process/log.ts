/** The log from the view of the tiers' hosts: an event's facts, then one sentence. `shared/io/pino-log.ts` implements it. */
export interface Log {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
}
