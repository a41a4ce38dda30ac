/** Runs a program to its end and returns what it printed; anything but a clean exit is thrown with its complaint. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

export type RunOptions = { readonly msMax: number; readonly cwd?: string; readonly env?: Readonly<Record<string, string>> };

export async function runProgram(path: string, args: readonly string[], options: RunOptions): Promise<string> {
  const ran = await promisify(execFile)(path, args, {
    timeout: options.msMax,
    maxBuffer: 16 * 1024 * 1024,
    env: { ...process.env, LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive", ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  return ran.stdout;
}
