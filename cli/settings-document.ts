/** Writes docs/SETTINGS.md: every setting of `coroom start` by role, from the declarations. `npm run settings-doc` updates the file. */

import { envName, readableSettings, type Setting, SettingError, type Settings } from "../shared/settings/settings.ts";
import { shownDefault } from "./help.ts";

/** A value that every parser refuses, except the parsers that accept any text. */
const UNFIT = "\u{0}";

export function settingsDocument(groups: Readonly<Record<string, Settings>>): string {
  return [
    "# Settings",
    "",
    "All settings of `coroom start`, by role. Each setting is an environment variable or a flag: `COROOM_LOG_LEVEL=debug` is `--log-level debug`. A flag overrides its variable. Names end in their unit: `_MS` is milliseconds, `_BYTES` is bytes, `_MAX` and `_MIN` are limits. [OPERATIONS.md](OPERATIONS.md) explains when to change which setting. `npm run settings-doc` generates this page from the declarations.",
    "",
    "The first part lists the settings that an operator decides. The second part, [Advanced](#advanced), lists tuning values whose defaults fit most deployments.",
    ...tables(groups, ({ basic }) => basic === true),
    "",
    "# Advanced",
    ...tables(groups, ({ basic }) => basic !== true),
    "",
  ].join("\n");
}

function tables(groups: Readonly<Record<string, Settings>>, isShown: (setting: Setting<unknown>) => boolean): string[] {
  return Object.entries(groups).flatMap(([title, settings]) => {
    const shown = readableSettings(settings).filter(([, setting]) => isShown(setting));
    if (shown.length === 0) return [];
    return [
      "",
      `## ${titleOf(title)}`,
      "",
      "| variable | value | default | meaning |",
      "|---|---|---|---|",
      ...shown.map(([name, setting]) => rowOf(name, setting)),
    ];
  });
}

/** Role names keep the spelling of the setting COROOM_ROLES. */
function titleOf(title: string): string {
  return title.includes(" ") ? title.charAt(0).toUpperCase() + title.slice(1) : title;
}

function rowOf(name: string, setting: Setting<unknown>): string {
  const fallback = setting.fallback === undefined ? "required" : shownDefault(setting);
  return `| ${["`" + envName(name) + "`", takenBy(setting), fallback, setting.meaning].map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

/** The values that a parser accepts, from the message with which it refuses a value. */
function takenBy({ parse }: Setting<unknown>): string {
  try {
    parse(UNFIT);
    return "any text";
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    return error.message.replace(/^must be /, "");
  }
}
