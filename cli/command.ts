/** A command: its name, settings, examples and its function. */

import { type SettingSources, readSettings, type Settings, type Values } from "../shared/settings/settings.ts";

export type PrintLine = (text: string) => void;

export type CliCommand = {
  /** One word, or two words for a command of a group. */
  readonly name: string;
  readonly summary: string;
  readonly settings: Settings;
  /** The setting that a word after the command sets: `coroom ops room notes` sets the room. */
  readonly subject?: string;
  /** The settings grouped by role, for the help text. */
  readonly groups?: Readonly<Record<string, Settings>>;
  /** Complete command lines. */
  readonly examples: readonly string[];
  /** Throws SettingError for invalid settings, or when the command cannot be done. */
  readonly run: (given: SettingSources, print: PrintLine) => Promise<void>;
};

export function command<S extends Settings>({
  run,
  ...described
}: Omit<CliCommand, "run" | "settings"> & {
  readonly settings: S;
  readonly run: (config: Values<S>, print: PrintLine) => Promise<void>;
}): CliCommand {
  return { ...described, run: (given, print) => run(readSettings(described.settings, given), print) };
}

/**
 * Marks settings that belong to one call (a room, user or host) as flags only. A variable of the same name may be set
 * for a process with another meaning.
 */
type FlagsOnly<S extends Settings> = { readonly [Key in keyof S]: S[Key] & { readonly flagOnly: true } };

export function flagsOnly<const S extends Settings>(settings: S): FlagsOnly<S> {
  return Object.fromEntries(Object.entries(settings).map(([name, setting]) => [name, { ...setting, flagOnly: true }])) as FlagsOnly<S>;
}
