/** Splits a command line into the command, of one word or two, and its flags: `--name value`, `--name=value`, or `--name` alone for "true". */

import { SettingError } from "../shared/config.ts";

export type CommandLine = {
  readonly command: string | undefined;
  readonly flags: Readonly<Record<string, string>>;
  /** Those of the flags that stood alone. */
  readonly bare: readonly string[];
};

/** Never with a value, which would be the command. */
const ALONE = ["help", "version"];

/** Throws SettingError for what is neither. Flag names come back in camelCase, as settings are named. Commands of two words begin with one of `groups`. */
export function parseCommandLine(words: readonly string[], groups: readonly string[] = []): CommandLine {
  let command: string | undefined;
  const flags: Record<string, string> = {};
  const bare: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] === "-h" ? "--help" : words[index]!;
    const flag = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
    if (flag !== null) {
      const next = words[index + 1];
      const takesNext = flag[2] === undefined && !ALONE.includes(flag[1]!) && next !== undefined && !next.startsWith("--");
      const name = camelCase(flag[1]!);
      flags[name] = flag[2] ?? (takesNext ? next : "true");
      if (takesNext) index += 1;
      else if (flag[2] === undefined) bare.push(name);
    } else if (command === undefined && !word.startsWith("-")) command = word;
    else if (command !== undefined && groups.includes(command) && !word.startsWith("-")) command = `${command} ${word}`;
    else throw new SettingError(`"${word}" is neither a command nor a --flag: see coroom --help`);
  }
  return { command, flags, bare };
}

function camelCase(flag: string): string {
  return flag.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
