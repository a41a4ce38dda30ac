/** The real log: one JSON line an event on standard error, so that standard output stays for what a person asked for. */

import { destination, pino } from "pino";

import type { Log } from "../process/log.ts";

const STANDARD_ERROR = 2;

/** `level` is pino's: debug, info, warn, error or silent. `cause` is written out as an error. */
export function pinoLog(facts: Record<string, unknown>, level: string): Log {
  return pino({ base: facts, level, serializers: { cause: pino.stdSerializers.err } }, destination({ fd: STANDARD_ERROR, sync: true }));
}
