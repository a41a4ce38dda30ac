/**
 * The real log: one line of JSON per event on standard error, so that standard output contains only what a person
 * requested.
 */

import { destination, pino } from "pino";

import type { Log } from "../process/log.ts";

const STANDARD_ERROR = 2;

/** `level` is pino's: debug, info, warn, error or silent. `cause` is written out as an error. */
export function pinoLog(facts: Record<string, unknown>, level: string): Log {
  return pino({ base: facts, level, serializers: { cause: pino.stdSerializers.err } }, destination({ fd: STANDARD_ERROR, sync: true }));
}
