/** A misspelt flag must not be read as "use the default". */

import { flagName, SettingError, type Settings } from "../shared/config.ts";

export function refuseUnknownFlags(flags: Readonly<Record<string, string>>, settings: Settings): void {
  const unknown = Object.keys(flags).filter((name) => !Object.hasOwn(settings, name));
  if (unknown.length > 0) throw new SettingError(`no such flag: ${unknown.map(flagName).join(", ")}; see coroom --help`);
}
