import { pino, stdSerializers } from "pino";

import type { Log } from "../log.ts";

/** One JSON line an event on standard output; `level` is pino's: debug, info, warn, error, silent. */
export function pinoLog(facts: Record<string, unknown>, level: string): Log {
  return pino({ base: facts, level, serializers: { cause: stdSerializers.errWithCause } });
}
