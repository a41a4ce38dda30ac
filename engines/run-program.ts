/** Runs a program to its end and returns its output. Throws its error output unless it exits with 0. */

import { execFile } from "node:child_process";

type RunOptions = {
  readonly msMax: number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Absent: the user of this process. */
  readonly user?: ProgramUser;
};
/** A user that a program runs as. Only root can choose one. */
export type ProgramUser = { readonly uid: number; readonly gid: number };

/** The environment of this process without the settings of Coroom, some of which are secrets. */
export function inheritedEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("COROOM_")));
}

export class ProgramError extends Error {
  override readonly name = "ProgramError";
  /** The complete error output; empty if the program could not be run. */
  readonly errorOutput: string;

  constructor(message: string, complaints: string, options?: ErrorOptions) {
    super(message, options);
    this.errorOutput = complaints;
  }
}

export function runProgram(path: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { msMax, cwd = process.cwd(), env, user } = options;
  const settings = { timeout: msMax, maxBuffer: 16 * 1024 * 1024, cwd, env: { ...inheritedEnv(), LC_ALL: "C", ...env }, ...user };
  return new Promise((resolve, reject) => {
    execFile(path, args, settings, (cause, printed, complaints) => {
      if (cause === null) resolve(printed);
      else reject(new ProgramError(cause.code === "ENOENT" ? `${path} is not installed` : `${path} failed`, complaints, { cause }));
    });
  });
}
