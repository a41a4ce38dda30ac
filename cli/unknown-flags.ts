/** A misspelt flag must not be read as "use the default". */

import { flagName, SettingError } from "../shared/config.ts";
import type { Command } from "./command.ts";

export function refuseUnknownFlags(flags: Readonly<Record<string, string>>, { name, settings }: Pick<Command, "name" | "settings">): void {
  const unknown = Object.keys(flags).filter((flag) => !Object.hasOwn(settings, flag));
  if (unknown.length > 0) throw new SettingError(`no such flag: ${unknown.map(flagName).join(", ")}; see coroom ${name} --help`);
}
