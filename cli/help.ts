/** What `--help` prints: the list of commands, or all about one, from the table of commands. */

import { envName, flagName, type Setting, type Settings } from "../shared/config.ts";
import type { Command } from "./command.ts";

export function helpText(commands: readonly Command[]): string {
  return [
    "coroom: the real-time layer of a collaborative editor",
    "",
    ...commands.map(({ name, summary }) => `  coroom ${name.padEnd(17)} ${summary}`),
    "",
    "coroom COMMAND --help tells what a command reads, with an example; coroom --version prints the version.",
  ].join("\n");
}

export function helpOf({ name, summary, settings, groups, examples }: Command): string {
  const all = Object.entries(settings);
  const ofCall = all.filter(([, { flagOnly }]) => flagOnly === true);
  const rest = all.filter(([, { flagOnly }]) => flagOnly !== true);
  return [
    `coroom ${name}: ${summary}`,
    "",
    "For example",
    ...examples.map((example) => `  ${example}`),
    ...(ofCall.length === 0
      ? []
      : ["", "Flags", ...ofCall.map(([flag, setting]) => `  ${flagName(flag).padEnd(20)} ${describe(setting)}`)]),
    ...(rest.length === 0
      ? []
      : ["", "Settings, each a flag or a variable; the flag wins", ...(groups === undefined ? table(rest) : grouped(settings, groups))]),
  ].join("\n");
}

function grouped(settings: Settings, groups: Readonly<Record<string, Settings>>): string[] {
  return Object.entries(groups).flatMap(([title, group]) => [
    "",
    `  ${title}`,
    ...table(Object.keys(group).map((name) => [name, settings[name]!])),
  ]);
}

function table(settings: readonly [string, Setting<unknown>][]): string[] {
  const width = Math.max(...settings.map(([name]) => envName(name).length));
  return settings.map(([name, setting]) => `  ${flagName(name).padEnd(width)}  ${envName(name).padEnd(width)}  ${describe(setting)}`);
}

function describe({ fallback, shownAs, meaning }: Setting<unknown>): string {
  return `${meaning} (${fallback === undefined ? "must be given" : `default ${shownDefault({ fallback, shownAs })}`})`;
}

/** As one would write it. */
export function shownDefault({ fallback, shownAs }: { readonly fallback?: unknown; readonly shownAs?: string | undefined }): string {
  return shownAs ?? show(fallback);
}

function show(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(",");
  return value === "" ? "empty" : String(value);
}
