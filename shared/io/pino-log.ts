/**
 * The real log, on standard error, so that standard output contains only what a person requested. A terminal gets one
 * readable line per event. A file, a pipe and a container get one line of JSON per event.
 */

import { destination, type DestinationStream, pino } from "pino";

import type { Log } from "../process/log.ts";

const STANDARD_ERROR = 2;
/** A file on a full disk takes no lines. Lines beyond this are dropped, and the others are written once it has space. */
const UNWRITTEN_BYTES_MAX = 65_536;

/** Loaded only for a terminal. */
const pretty = process.stderr.isTTY ? (await import("pino-pretty")).default : undefined;

/** `level` is pino's: debug, info, warn, error or silent. `cause` is written out as an error. */
export function pinoLog(facts: Record<string, unknown>, level: string): Log {
  return pino({ base: facts, level, serializers: { cause: pino.stdSerializers.err } }, standardError());
}

function standardError(): DestinationStream {
  if (pretty === undefined) {
    const lines = destination({ fd: STANDARD_ERROR, sync: true, maxLength: UNWRITTEN_BYTES_MAX });
    return lines.on("error", () => {}); // Without a listener, a full disk ends the process. The next line tries again.
  }
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
