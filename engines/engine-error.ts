/**
 * Why an engine is missing or did not start. The message alone tells the user what is wrong and what to do. Callers use
 * `kind` and never read the message.
 */
export type EngineProblem = "binary-missing" | "port-in-use" | "data-dir-unwritable" | "data-dir-in-use" | "start-failed";

export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly kind: EngineProblem;

  constructor(kind: EngineProblem, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
