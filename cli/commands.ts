/** Every command but `coroom start`. */

import { type Given, readSettings, SettingError } from "../shared/config.ts";
import { isAdminCommand, runAdmin } from "./admin.ts";
import { adminSettings } from "./admin-settings.ts";
import { helpText } from "./help.ts";
import { describeRoom, watchEvents } from "./ops.ts";
import { listLeftOut } from "./ops-left-out.ts";
import { isPlacementCommand, runPlacementCommand } from "./ops-placement.ts";
import { opsLeftOutSettings, opsRoomSettings, opsStepDownSettings, opsWatchSettings, restoreSettings } from "./ops-settings.ts";
import { stepDown } from "./ops-step-down.ts";
import { restore } from "./restore.ts";
import { runUntilSignalled } from "./run-until-signalled.ts";
import { localSecrets } from "./secrets.ts";
import { makeToken } from "./token.ts";
import { tokenSettings } from "./token-settings.ts";
import { refuseUnknownFlags } from "./unknown-flags.ts";

/** Without one, or where help is asked for, it helps. */
export async function runCommand(command: string | undefined, given: Given & { readonly flags: Readonly<Record<string, string>> }): Promise<void> {
  const { flags } = given;
  if (command === undefined || flags["help"] !== undefined) return void process.stdout.write(helpText());
  switch (command) {
    case "token": {
      refuseUnknownFlags(flags, tokenSettings);
      const { dataDir, jwtSecret, ...claims } = readSettings(tokenSettings, given);
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
