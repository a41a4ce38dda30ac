/** Every command but `coroom start`. */

import { type Given, readSettings, SettingError } from "../shared/config.ts";
import { adminSettings, isAdminCommand, runAdmin } from "./admin.ts";
import { helpText } from "./help.ts";
import { describeRoom, opsRoomSettings, opsWatchSettings, watchEvents } from "./ops.ts";
import { listLeftOut, opsLeftOutSettings } from "./ops-left-out.ts";
import { isPlacementCommand, runPlacementCommand } from "./ops-placement.ts";
import { opsStepDownSettings, stepDown } from "./ops-step-down.ts";
import { restore, restoreSettings } from "./restore.ts";
import { runUntilSignalled } from "./run-until-signalled.ts";
import { localSecrets } from "./secrets.ts";
import { startSettings } from "./settings.ts";
import { makeToken, tokenSettings } from "./token.ts";
import { refuseUnknownFlags } from "./unknown-flags.ts";

/** Without one, or where help is asked for, it helps. */
export async function runCommand(command: string | undefined, given: Given & { readonly flags: Readonly<Record<string, string>> }): Promise<void> {
  const { flags } = given;
  if (command === undefined || flags["help"] !== undefined) return void process.stdout.write(helpText());
  switch (command) {
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
    case "ops left-out":
      refuseUnknownFlags(flags, opsLeftOutSettings);
      return listLeftOut(readSettings(opsLeftOutSettings, given), (line) => process.stdout.write(`${line}\n`));
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
