/** Writes the text of `--help`: the list of commands, or one command with its flags and settings. */

import { envName, flagName, readableSettings, type Setting, type Settings } from "../shared/settings/settings.ts";
import type { CliCommand } from "./command.ts";

export function helpText(commands: readonly CliCommand[]): string {
  return [
    "coroom: the real-time layer of a collaborative editor",
    "",
    ...commands.map(({ name, summary }) => `  coroom ${name.padEnd(17)} ${summary}`),
    "",
    "coroom COMMAND --help shows the settings of a command and an example. coroom --version prints the version.",
  ].join("\n");
}

export function helpOf({ name, summary, subject, settings, groups, examples }: CliCommand): string {
  const all = readableSettings(settings);
  const ofCall = all.filter(([, { flagOnly }]) => flagOnly === true);
  const rest = all.filter(([, { flagOnly }]) => flagOnly !== true);
  return [
    `coroom ${name}: ${summary}`,
    "",
    ...(subject === undefined ? [] : [`Usage: coroom ${name} [${subject.toUpperCase()}] [flags]`, ""]),
    "For example",
    ...examples.map((example) => `  ${example}`),
    ...(ofCall.length === 0
      ? []
      : ["", "Flags", ...ofCall.map(([flag, setting]) => `  ${flagName(flag).padEnd(20)} ${describe(setting)}`)]),
    ...(rest.length === 0
      ? []
      : [
          "",
          "Settings, each as a flag or a variable. A flag overrides its variable.",
          ...(groups === undefined ? table(rest) : grouped(settings, groups)),
        ]),
  ].join("\n");
}

function grouped(settings: Settings, groups: Readonly<Record<string, Settings>>): string[] {
  const tables = (isShown: (setting: Setting<unknown>) => boolean): string[] =>
    Object.entries(groups).flatMap(([title, group]) => {
      const shown = readableSettings(group).filter(([, setting]) => isShown(setting));
      return shown.length === 0 ? [] : ["", `  ${title}`, ...table(shown.map(([name]) => [name, settings[name]!]))];
    });
  return [
    ...tables(({ basic }) => basic === true),
    "",
    "Advanced: tuning values. The defaults fit most deployments.",
    ...tables(({ basic }) => basic !== true),
  ];
}

function table(settings: readonly [string, Setting<unknown>][]): string[] {
  const width = Math.max(...settings.map(([name]) => envName(name).length));
  return settings.map(([name, setting]) => `  ${flagName(name).padEnd(width)}  ${envName(name).padEnd(width)}  ${describe(setting)}`);
}

function describe({ fallback, shownAs, meaning }: Setting<unknown>): string {
  return `${meaning} (${fallback === undefined ? "required" : `default ${shownDefault({ fallback, shownAs })}`})`;
}

/** The default as an operator writes it. */
export function shownDefault({ fallback, shownAs }: { readonly fallback?: unknown; readonly shownAs?: string | undefined }): string {
  return shownAs ?? show(fallback);
}

function show(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(",");
  return value === "" ? "empty" : String(value);
}
