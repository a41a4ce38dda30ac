/** The command line of this process: runs what it says, and turns a refusal into one clear message. */

import { commands } from "./commands.ts";
import { runCommandLine } from "./run.ts";
import { toldPlainly } from "./told-plainly.ts";

export async function obeyCommandLine(): Promise<void> {
  try {
    await runCommandLine(process.argv.slice(2), commands, {
      env: process.env,
      say: (text) => process.stdout.write(`${text}\n`),
      warn: (text) => process.stderr.write(`coroom: warning: ${text}\n`),
    });
  } catch (error) {
    process.stderr.write(`coroom: ${toldPlainly(error)}\n`);
    process.exit(1); // Whatever had started before the refusal must not keep the process alive.
  }
}
