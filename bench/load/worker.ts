/**
 * A load process as its caller uses it: a set of named functions, each with one argument and one result. Arguments and
 * results are structured clones.
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";

type Call = { readonly id: number; readonly name: string; readonly argument: unknown };
type Outcome = { readonly id: number; readonly value: unknown } | { readonly id: number | undefined; readonly failure: string };

export type Functions = Readonly<Record<string, (argument: never) => unknown>>;

/** Call this once in the load process. An error outside a call also ends the run. */
export function serveCalls(functions: Functions): void {
  const fail = (id: number | undefined, error: unknown): void =>
    answer({ id, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  const answer = (outcome: Outcome): void => void process.send!(outcome);
  process.on("message", ({ id, name, argument }: Call) => {
    Promise.resolve(functions[name]!(argument as never)).then(
      (value) => answer({ id, value }),
      (error: unknown) => fail(id, error),
    );
  });
  process.on("uncaughtException", (error) => fail(undefined, error));
  process.on("disconnect", () => process.exit(0));
}

type Waiting = { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void };

export class Worker<Served extends Functions> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #failure: Error | undefined;
  #calls = 0;

  /** `module`: name of a compiled module, for example `come-back-load`. */
  constructor(module: string) {
    this.#child = fork(resolve(`dist/bench/load/${module}.js`), {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.#child.on("message", (outcome: Outcome) => this.#receive(outcome));
    this.#child.on("exit", () => this.#fail(new Error(`the load process ${module} ended before its time`)));
  }

  get pid(): number {
    return this.#child.pid!;
  }

  call<Name extends keyof Served & string>(name: Name, argument: Parameters<Served[Name]>[0]): Promise<Awaited<ReturnType<Served[Name]>>> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const id = ++this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#child.send({ id, name, argument } satisfies Call);
    });
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.removeAllListeners("exit");
    const exited = once(this.#child, "exit");
    this.#child.kill();
    await exited;
  }

  #receive(outcome: Outcome): void {
    if ("failure" in outcome) return this.#settle(outcome.id, new Error(`the run failed: ${outcome.failure}`));
    this.#waiting.get(outcome.id)?.resolve(outcome.value);
    this.#waiting.delete(outcome.id);
  }

  #settle(id: number | undefined, error: Error): void {
    if (id === undefined) return this.#fail(error);
    this.#waiting.get(id)?.reject(error);
    this.#waiting.delete(id);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
