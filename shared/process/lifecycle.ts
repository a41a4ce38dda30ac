/** The result of every tier's `start…`. Parts start in order and stop in reverse order. */
export interface Running {
  /** Drains and ends this part. Resolves once nothing of it runs any more. May be called twice. */
  stop(): Promise<void>;
  /** The reason why this part cannot work now although it runs. Undefined, or absent: it can. */
  obstacle?(): string | undefined;
}

/** A `stop` that may be called twice: a second caller waits for the same end. */
export function stopOnce(stop: () => Promise<void>): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  return () => (stopped ??= stop());
}

/**
 * The reason why a process cannot start: a port is in use, or NATS does not answer. Only the message, which names the
 * remedy, is shown to the person who starts the process. `cause` is the original error.
 */
export class StartError extends Error {
  override readonly name = "StartError";
}
