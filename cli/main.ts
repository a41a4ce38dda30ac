#!/usr/bin/env node
/** The command `coroom`: reads the command line, runs one command, turns a refusal into one clear message. */

import { EngineError } from "../engines/engine-error.ts";
import { readSettings, SettingError } from "../shared/config.ts";
import { adminSettings, isAdminCommand, runAdmin } from "./admin.ts";
import { parseCommandLine } from "./arguments.ts";
import { helpText } from "./help.ts";
import { describeRoom, opsRoomSettings, opsWatchSettings, watchEvents } from "./ops.ts";
import { isPlacementCommand, runPlacementCommand } from "./ops-placement.ts";
import { opsStepDownSettings, stepDown } from "./ops-step-down.ts";
import { runUntilSignalled } from "./run-until-signalled.ts";
import { localSecrets } from "./secrets.ts";
import { startSettings } from "./settings.ts";
import { start } from "./start.ts";
import { makeToken, tokenSettings } from "./token.ts";
import { restore, restoreSettings } from "./restore.ts";
import { refuseUnknownFlags } from "./unknown-flags.ts";

async function run(words: readonly string[]): Promise<void> {
  const { command, flags } = parseCommandLine(words);
  const given = { flags, env: process.env };
  if (command === undefined || flags["help"] !== undefined) return void process.stdout.write(helpText());
  switch (command) {
    case "start":
      refuseUnknownFlags(flags, startSettings);
      return runUntilSignalled(() => start(readSettings(startSettings, given)));
    case "token": {
      const settings = { ...tokenSettings, dataDir: startSettings.dataDir, jwtSecret: startSettings.jwtSecret };
      refuseUnknownFlags(flags, settings);
      const { dataDir, jwtSecret, ...claims } = readSettings(settings, given);
      return void process.stdout.write(`${await makeToken(claims, jwtSecret === "" ? localSecrets(dataDir).jwtSecret : jwtSecret)}\n`);
    }
    case "restore":
      refuseUnknownFlags(flags, restoreSettings);
      return restore(readSettings(restoreSettings, given), (line) => process.stdout.write(`${line}\n`));
    case "ops watch":
      refuseUnknownFlags(flags, opsWatchSettings);
      return runUntilSignalled(() => watchEvents(readSettings(opsWatchSettings, given), (line) => process.stdout.write(`${line}\n`)));
    case "ops room":
      refuseUnknownFlags(flags, opsRoomSettings);
      return describeRoom(readSettings(opsRoomSettings, given), (line) => process.stdout.write(`${line}\n`));
    case "ops step-down":
      refuseUnknownFlags(flags, opsStepDownSettings);
      return stepDown(readSettings(opsStepDownSettings, given), (line) => process.stdout.write(`${line}\n`));
    default: {
      if (isPlacementCommand(command)) return runPlacementCommand(command, given, (line) => process.stdout.write(`${line}\n`));
      if (!isAdminCommand(command)) throw new SettingError(`there is no command "${command}": see coroom --help`);
      refuseUnknownFlags(flags, adminSettings[command]);
      return void process.stdout.write(`${await runAdmin(command, readSettings(adminSettings[command], given))}\n`);
    }
  }
}

run(process.argv.slice(2)).catch((error: unknown) => {
  const expected = error instanceof SettingError || error instanceof EngineError;
  process.stderr.write(`coroom: ${error instanceof Error ? (expected ? error.message : (error.stack ?? error.message)) : String(error)}\n`);
  process.exit(1); // Whatever had started before the refusal must not keep the process alive.
});
