#!/usr/bin/env node
/** The command `coroom`: runs what the command line says, and turns a refusal into one clear message. */

import { EngineError } from "../engines/engine-error.ts";
import { SettingError } from "../shared/config.ts";
import { commands } from "./commands.ts";
import { runCommandLine } from "./run.ts";

runCommandLine(process.argv.slice(2), commands, { env: process.env, say: (text) => process.stdout.write(`${text}\n`) }).catch((error: unknown) => {
  const expected = error instanceof SettingError || error instanceof EngineError;
  process.stderr.write(`coroom: ${error instanceof Error ? (expected ? error.message : (error.stack ?? error.message)) : String(error)}\n`);
  process.exit(1); // Whatever had started before the refusal must not keep the process alive.
});
