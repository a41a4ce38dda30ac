#!/usr/bin/env node
/** The command `coroom`: reads the command line, runs one command, turns a refusal into one clear message. */

import { readSettings } from "../shared/config.ts";
import { parseCommandLine } from "./arguments.ts";
import { runUntilSignalled } from "./run-until-signalled.ts";
import { startSettings } from "./settings.ts";
import { start } from "./start.ts";
import { toldPlainly } from "./told-plainly.ts";
import { refuseUnknownFlags } from "./unknown-flags.ts";

async function run(words: readonly string[]): Promise<void> {
  const { command, flags } = parseCommandLine(words);
  const given = { flags, env: process.env };
  // What runs for long does not carry the others' code.
  if (command !== "start" || flags["help"] !== undefined) return (await import("./commands.ts")).runCommand(command, given);
  refuseUnknownFlags(flags, startSettings);
  return runUntilSignalled(() => start(readSettings(startSettings, given)));
}

run(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`coroom: ${toldPlainly(error)}\n`);
  process.exit(1); // Whatever had started before the refusal must not keep the process alive.
});
