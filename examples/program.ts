/** A running example program and its output. */

import { spawn, type ChildProcess } from "node:child_process";
import { resolve } from "node:path";

import { eventually } from "../test/system/eventually.ts";

export const READY_MS_MAX = 60_000;

export class Program {
  readonly #child: ChildProcess;
  printed = "";

  constructor(file: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [resolve("examples", file), ...args], { env: { ...process.env, ...env }, stdio: "pipe" });
    this.#child.stdin?.on("error", () => {}); // The program has ended.
    for (const output of [this.#child.stdout, this.#child.stderr]) output?.on("data", (data: Buffer) => (this.printed += data.toString()));
  }

  prints(text: string): Promise<unknown> {
    return eventually(`it prints ${text}`, () => this.printed.includes(text), READY_MS_MAX);
  }

  type(line: string): void {
    this.write(`${line}\n`);
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  async end(): Promise<number | null> {
    this.#child.stdin?.end();
    return this.exited();
  }

  exited(): Promise<number | null> {
    return this.#child.exitCode === null
      ? new Promise((ended) => this.#child.once("exit", (code) => ended(code)))
      : Promise.resolve(this.#child.exitCode);
  }

  stop(): void {
    this.#child.kill("SIGTERM");
  }
}
