/**
 * A programming error stops the process, so that another process takes over from the log. Never assert on input: refuse
 * it with a value.
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
