/**
 * Why a process cannot start in the world as it finds it: a port is taken, NATS does not answer. The message is for the
 * person who starts it, says what to do, and is all that is shown; `cause` is what was met.
 */
export class StartError extends Error {
  override readonly name = "StartError";
}
