/**
 * The real log, on standard error, so that standard output contains only what a person requested. A terminal gets one
 * readable line per event. A file, a pipe and a container get one line of JSON per event.
 */

import { destination, type DestinationStream, pino } from "pino";

import { AssertionError } from "../assert.ts";
import type { Log } from "../process/log.ts";

const STANDARD_ERROR = 2;
/** A file on a full disk takes no lines. Lines beyond this are dropped, and the others are written once it has space. */
const UNWRITTEN_BYTES_MAX = 65_536;

/** Loaded only for a terminal. */
const pretty = process.stderr.isTTY ? (await import("pino-pretty")).default : undefined;

/**
 * `level` is pino's: debug, info, warn, error or silent. `cause` is written out as an error. Below "error" another system
 * failed, and many rooms may report it, so the stack is left out unless the cause is a mistake of the program.
 */
export function pinoLog(facts: Record<string, unknown>, level: string): Log {
  const log = pino({ base: facts, level, serializers: { cause: written } }, standardError());
  const write =
    (at: "debug" | "info" | "warn") =>
    (given: object, sentence: string): void =>
      log[at]("cause" in given ? { ...given, cause: withoutStack(given.cause) } : given, sentence);
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: (given, sentence) => log.error(given, sentence) };
}

const MISTAKES = [AssertionError, TypeError, RangeError, ReferenceError] as const;

function withoutStack(cause: unknown): unknown {
  if (!(cause instanceof Error) || isMistake(cause)) return cause;
  const { type, message, code } = pino.stdSerializers.err(cause); // Others may be large: a client of Redis adds the whole command.
  return { type, message: message === "" && cause instanceof AggregateError ? messagesIn(cause) : message, code };
}

/** `fetch` throws a TypeError with a cause if the network fails. */
function isMistake(cause: Error): boolean {
  return MISTAKES.some((Mistake) => cause instanceof Mistake) && !(cause.cause instanceof Error);
}

/** Node throws an AggregateError without a message if no address of a host can be reached. */
function messagesIn({ errors }: AggregateError): string {
  return errors.map((error) => (error instanceof Error ? error.message : String(error))).join(", ");
}

/** The serializer of pino would convert what `withoutStack` returns once more. */
function written(cause: unknown): unknown {
  return cause instanceof Error ? pino.stdSerializers.err(cause) : cause;
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
