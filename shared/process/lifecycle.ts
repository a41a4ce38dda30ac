/** What every tier's `start…` returns. Parts start in order and stop in reverse. */
export interface Running {
  /** Drains and ends this part. Resolves once nothing of it is left running; safe to call twice. */
  stop(): Promise<void>;
  /** Why this part cannot do its work now although it runs. Undefined, or absent: nothing prevents it. */
  obstacle?(): string | undefined;
}

/** A `stop` that is safe to call twice: a second caller waits for the same end. */
export function stopOnce(stop: () => Promise<void>): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  return () => (stopped ??= stop());
}

/**
 * Why a process cannot start: a port is in use, NATS does not answer. Only the message is shown to the person who
 * starts the process, and it names the remedy; `cause` is the original error.
 */
export class StartError extends Error {
  override readonly name = "StartError";
}
