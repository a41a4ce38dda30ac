/** A flag whose value was forgotten must not be read as "true": a kick would look for a user of that name. */

import { flag, flagName, SettingError } from "../shared/config.ts";
import type { Command } from "./command.ts";

/** Throws SettingError for those that stood alone and are neither true nor false. */
export function refuseBareFlags(bare: readonly string[], { name, settings }: Pick<Command, "name" | "settings">): void {
  const valueless = bare.filter((known) => settings[known]?.parse !== flag);
  if (valueless.length > 0)
    throw new SettingError(`no value is given with ${valueless.map(flagName).join(", ")}; see coroom ${name} --help`);
}
