/**
 * A programmer's mistake stops the process, so that another can take over from the log.
 * Bad input is never asserted: it is refused with a value.
 */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export function assertNever(value: never): never {
  throw new AssertionError(`unhandled case: ${JSON.stringify(value)}`);
}
