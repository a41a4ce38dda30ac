/** What a command is: its name, what it reads, how it is used, and what it does. */

import { type Given, readSettings, type Settings, type Values } from "../shared/config.ts";

export type Say = (text: string) => void;

export type Command = {
  /** One word, or two where it is one of a group. */
  readonly name: string;
  readonly summary: string;
  readonly settings: Settings;
  /** Whose its settings are, where help is to tell. */
  readonly groups?: Readonly<Record<string, Settings>>;
  /** As they are typed. */
  readonly examples: readonly string[];
  /** Throws SettingError for what it cannot read, or cannot do as it was asked. */
  readonly run: (given: Given, say: Say) => Promise<void>;
};

export function command<S extends Settings>({
  run,
  ...described
}: Omit<Command, "run" | "settings"> & { readonly settings: S; readonly run: (config: Values<S>, say: Say) => Promise<void> }): Command {
  return { ...described, run: (given, say) => run(readSettings(described.settings, given), say) };
}
