/** Runs a command line: one command of the table, or help. */

import { escapedMarks } from "../shared/display-text.ts";
import { type SettingSources, SettingError, flag, flagName, readableSettings } from "../shared/settings/settings.ts";
import type { CliCommand, PrintLine } from "./command.ts";
import { helpOf, helpText } from "./help.ts";
import { refuseMisspelt, suggestionFor } from "./unknown-variables.ts";

/**
 * Throws SettingError for unknown flags and commands. Without a command, or for a group alone, it lists the commands.
 */
export async function runCommandLine(
  words: readonly string[],
  commands: readonly CliCommand[],
  { env, print, warn }: { readonly env: SettingSources["env"]; readonly print: PrintLine; readonly warn: PrintLine },
): Promise<void> {
  const { command: named, words: more, flags: flagged, bare } = parseCommandLine(askedForHelp(words), groupsOf(commands));
  if (flagged["version"] !== undefined) return print((await import("../shared/io/version.ts")).version());
  if (named === undefined) {
    refuseUnknown(Object.keys(flagged), ALONE, "--help");
    return print(helpText(commands));
  }
  const command = commands.find(({ name }) => name === named);
  if (command === undefined) return print(helpText(ofGroup(named, commands)));
  if (flagged["help"] !== undefined) return print(helpOf(command));
  const flags = { ...flagged, ...subjectOf(more, flagged, command) };
  refuseUnknownFlags(flags, command);
  refuseBareFlags(bare, command);
  refuseMisspelt(env, commands, warn);
  return command.run({ flags, env }, (text) => print(escapedMarks(text))); // Tenants choose the names of rooms.
}

/** Treats `help` and `help token` like `--help` and `token --help`. */
function askedForHelp(words: readonly string[]): readonly string[] {
  return words[0] === "help" ? [...words.slice(1), "--help"] : words;
}

/** The first words of two-word commands. */
function groupsOf(commands: readonly CliCommand[]): readonly string[] {
  return commands.flatMap(({ name }) => name.split(" ").slice(0, -1));
}

function ofGroup(named: string, commands: readonly CliCommand[]): readonly CliCommand[] {
  const [group] = named.split(" ");
  const ofIt = commands.filter(({ name }) => name.startsWith(`${group} `));
  if (named === group && ofIt.length > 0) return ofIt;
  const suggestion = suggestionFor(
    named,
    commands.map(({ name }) => name),
  );
  throw new SettingError(`unknown command "${named}".${suggestion} Run coroom ${ofIt.length > 0 ? group : "--help"} for the list.`);
}

/** The words after the command, as the flag that they replace. Throws SettingError for a word that replaces no flag. */
export function subjectOf(
  words: readonly string[],
  flags: Flags,
  { name, subject, settings }: Pick<CliCommand, "name" | "subject" | "settings">,
): Flags {
  const [word, extra] = words;
  if (word === undefined) return {};
  if (subject === undefined || (extra !== undefined && settings[subject]?.isRepeatable !== true))
    throw new SettingError(`"${extra ?? word}" is neither a command nor a --flag. Run coroom ${name} --help for the list.`);
  if (flags[subject] !== undefined)
    throw new SettingError(`"${word}" and ${flagName(subject)} both name the ${subject}. Give one of them.`);
  return { [subject]: extra === undefined ? word : words };
}

/**
 * Throws SettingError for flags without a value that are not boolean. Otherwise the value would be "true", and a kick
 * would search a user of that name.
 */
export function refuseBareFlags(bare: readonly string[], { name, settings }: Pick<CliCommand, "name" | "settings">): void {
  const valueless = bare.filter((known) => settings[known]?.parse !== flag);
  if (valueless.length > 0)
    throw new SettingError(`missing value for ${valueless.map(flagName).join(", ")}. Run coroom ${name} --help for the list.`);
}

/** Refuses unknown flags. A misspelt flag must not silently mean "use the default". */
export function refuseUnknownFlags(flags: Flags, { name, settings }: Pick<CliCommand, "name" | "settings">): void {
  const known = readableSettings(settings).map(([setting]) => setting);
  refuseUnknown(Object.keys(flags), known, `${name} --help`);
}

function refuseUnknown(flags: readonly string[], known: readonly string[], help: string): void {
  const unknown = flags.filter((flag) => !known.includes(flag));
  if (unknown.length > 0)
    throw new SettingError(
      `unknown flag: ${unknown.map(flagName).join(", ")}.${suggestionFor(flagName(unknown[0]!), known.map(flagName))} Run coroom ${help} for the list.`,
    );
}

/** By setting name (camelCase): the value, or all values of a flag that is given several times. */
type Flags = Readonly<Record<string, string | readonly string[]>>;

/**
 * Splits a command line into the command (one or two words), further words, and flags: `--name value`, `--name=value`,
 * or `--name` alone for "true".
 */
type CommandLine = {
  readonly command: string | undefined;
  /** Words after the command that belong to no flag. */
  readonly words: readonly string[];
  readonly flags: Flags;
  /** Flags without a value. */
  readonly bare: readonly string[];
};

/** Flags that never take a value, so the next word is the command. */
const ALONE = ["help", "version"];

/**
 * Throws SettingError for a malformed flag. Flag names are returned in camelCase, like setting names. A command of two
 * words begins with one of `groups`.
 */
export function parseCommandLine(words: readonly string[], groups: readonly string[] = []): CommandLine {
  let command: string | undefined;
  const flags: Record<string, string | readonly string[]> = {};
  const [bare, more]: [string[], string[]] = [[], []];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] === "-h" ? "--help" : words[index]!;
    const flag = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
    if (flag !== null) {
      const next = words[index + 1];
      const takesNext = flag[2] === undefined && !ALONE.includes(flag[1]!) && next !== undefined && !next.startsWith("--");
      const name = camelCase(flag[1]!);
      const value = flag[2] ?? (takesNext ? next : "true");
      flags[name] = Object.hasOwn(flags, name) && !ALONE.includes(name) ? [flags[name]!, value].flat() : value;
      if (takesNext) index += 1;
      else if (flag[2] === undefined) bare.push(name);
    } else if (word.startsWith("-")) throw new SettingError(`"${word}" is neither a command nor a --flag. Run coroom --help for the list.`);
    else if (command === undefined) command = word;
    else if (groups.includes(command)) command = `${command} ${word}`;
    else more.push(word);
  }
  return { command, words: more, flags, bare };
}

function camelCase(flag: string): string {
  return flag.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
