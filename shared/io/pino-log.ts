/**
 * The real log, on standard error, so that standard output contains only what a person requested. A terminal gets one
 * readable line per event. A file, a pipe and a container get one line of JSON per event.
 */

import { destination, type DestinationStream, pino } from "pino";

import type { Log } from "../process/log.ts";

const STANDARD_ERROR = 2;

/** Loaded only for a terminal. */
const pretty = process.stderr.isTTY ? (await import("pino-pretty")).default : undefined;

/** `level` is pino's: debug, info, warn, error or silent. `cause` is written out as an error. */
export function pinoLog(facts: Record<string, unknown>, level: string): Log {
  return pino({ base: facts, level, serializers: { cause: pino.stdSerializers.err } }, standardError());
}

function standardError(): DestinationStream {
  if (pretty === undefined) return destination({ fd: STANDARD_ERROR, sync: true });
  return pretty({
    destination: STANDARD_ERROR,
    sync: true,
    singleLine: true,
    translateTime: "SYS:HH:MM:ss.l",
    messageFormat: "{role}: {msg}",
    ignore: "role",
    errorLikeObjectKeys: ["cause"],
  });
}
