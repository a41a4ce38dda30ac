/** What every tier's `start…` returns. Parts start in order and stop in reverse. */
export interface Running {
  /** Drains and ends this part. Resolves once nothing of it is left running; safe to call twice. */
  stop(): Promise<void>;
}

/** A `stop` that is safe to call twice: whoever calls again waits for the same end. */
export function stopOnce(stop: () => Promise<void>): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  return () => (stopped ??= stop());
}

/**
 * Why a process cannot start in the world as it finds it: a port is taken, NATS does not answer. The message is for the
 * person who starts it, says what to do, and is all that is shown; `cause` is what was met.
 */
export class StartError extends Error {
  override readonly name = "StartError";
}
