/** Runs the command line of this process and prints a failure as one clear message. */

import { StartError } from "../shared/process/lifecycle.ts";
import { SettingError } from "../shared/settings/settings.ts";
import { EngineError } from "../engines/engine-error.ts";
import { commands } from "./commands.ts";
import { runCommandLine } from "./run.ts";

export async function runProcessCommandLine(): Promise<void> {
  process.stdout.once("error", receiveOutputError);
  try {
    await runCommandLine(process.argv.slice(2), commands, {
      env: process.env,
      print: (text) => process.stdout.write(`${text}\n`),
      warn: (text) => process.stderr.write(`coroom: warning: ${text}\n`),
    });
  } catch (error) {
    process.stderr.write(`coroom: ${describeFailure(error)}\n`);
    process.exit(1); // Parts that started before the failure must not keep the process alive.
  }
}

/**
 * The reader of a pipe has gone, for example `head`. A command with work to end, such as the rooms of `coroom bench`, ends
 * it as after any SIGTERM. Without this, the command would end with a stack trace.
 */
function receiveOutputError(error: NodeJS.ErrnoException): void {
  process.stdout.on("error", () => {}); // Errors of later lines.
  if (error.code === "EPIPE") return void process.kill(process.pid, "SIGTERM");
  process.stderr.write(`coroom: cannot write the output: ${error.message}\n`);
  process.exit(1);
}

/**
 * The message for a failed command: the plain message of an expected failure, or the stack trace of an unexpected one.
 */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isForeseen = error instanceof SettingError || error instanceof StartError || error instanceof EngineError;
  return isForeseen ? error.message : (error.stack ?? error.message);
}
