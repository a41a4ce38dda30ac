/**
 * Why an engine could not be had or started, for the person at the terminal: the message alone says
 * what is wrong and what to do about it. Callers tell cases apart by `kind`, never by the message.
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
