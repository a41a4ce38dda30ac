/** Runs what a command line says: one command of the table, or help. */

import { type Given, SettingError } from "../shared/config.ts";
import { parseCommandLine } from "./arguments.ts";
import { refuseBareFlags } from "./bare-flags.ts";
import type { Command, Say } from "./command.ts";
import { helpOf, helpText } from "./help.ts";
import { refuseUnknownFlags } from "./unknown-flags.ts";
import { refuseMisspelt } from "./unknown-variables.ts";

/** Throws SettingError for what no command reads. Without a command, and for a group alone, it lists what there is. */
export async function runCommandLine(
  words: readonly string[],
  commands: readonly Command[],
  { env, say, warn }: { readonly env: Given["env"]; readonly say: Say; readonly warn: Say },
): Promise<void> {
  const { command: named, flags, bare } = parseCommandLine(askedForHelp(words), groupsOf(commands));
  if (flags["version"] !== undefined) return say((await import("./version.ts")).version());
  if (named === undefined) return say(helpText(commands));
  const command = commands.find(({ name }) => name === named);
  if (command === undefined) return say(helpText(ofGroup(named, commands)));
  if (flags["help"] !== undefined) return say(helpOf(command));
  refuseUnknownFlags(flags, command);
  refuseBareFlags(bare, command);
  refuseMisspelt(env, commands, warn);
  return command.run({ flags, env }, say);
}

/** `help` and `help token` are as good as `--help` and `token --help`. */
function askedForHelp(words: readonly string[]): readonly string[] {
  return words[0] === "help" ? [...words.slice(1), "--help"] : words;
}

/** The first words of commands of two. */
function groupsOf(commands: readonly Command[]): readonly string[] {
  return commands.flatMap(({ name }) => name.split(" ").slice(0, -1));
}

function ofGroup(named: string, commands: readonly Command[]): readonly Command[] {
  const [group] = named.split(" ");
  const ofIt = commands.filter(({ name }) => name.startsWith(`${group} `));
  if (named === group && ofIt.length > 0) return ofIt;
  throw new SettingError(`there is no command "${named}": see coroom ${ofIt.length > 0 ? group : "--help"}`);
}
