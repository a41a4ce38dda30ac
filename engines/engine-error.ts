/**
 * The reason why an engine is missing or did not start. The message alone gives the user the cause and the remedy.
 * Callers use `kind` and never read the message.
 */
type EngineProblem = "binary-missing" | "port-in-use" | "data-dir-unwritable" | "data-dir-in-use" | "start-failed";

export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly kind: EngineProblem;

  constructor(kind: EngineProblem, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
