/** Splits a command line into the command, of one word or two, and its flags: `--name value`, `--name=value`, or `--name` alone for "true". */

import { SettingError } from "../shared/config.ts";

/** Commands of two words begin so. */
const GROUPS: readonly (string | undefined)[] = ["ops"];

export type CommandLine = { readonly command: string | undefined; readonly flags: Readonly<Record<string, string>> };

/** Throws SettingError for what is neither. Flag names come back in camelCase, as settings are named. */
export function parseCommandLine(words: readonly string[]): CommandLine {
  let command: string | undefined;
  const flags: Record<string, string> = {};
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!;
    const flag = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
    if (flag !== null) {
      const next = words[index + 1];
      const takesNext = flag[2] === undefined && next !== undefined && !next.startsWith("--");
      flags[camelCase(flag[1]!)] = flag[2] ?? (takesNext ? next : "true");
      if (takesNext) index += 1;
    } else if (command === undefined && !word.startsWith("-")) command = word;
    else if (GROUPS.includes(command) && !word.startsWith("-")) command = `${command} ${word}`;
    else throw new SettingError(`"${word}" is neither a command nor a --flag: see coroom --help`);
  }
  return { command, flags };
}

function camelCase(flag: string): string {
  return flag.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
