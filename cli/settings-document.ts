/** `docs/SETTINGS.md`: every setting of `coroom start`, role by role, from where each is declared. `npm run settings-doc` writes it. */

import { envName, type Setting, SettingError, type Settings } from "../shared/config.ts";
import { shownDefault } from "./help.ts";

/** No setting takes it but those that take any text. */
const UNFIT = "\u{0}";

export function settingsDocument(groups: Readonly<Record<string, Settings>>): string {
  return [
    "# Settings",
    "",
    "What `coroom start` reads, by who reads it. Each is a variable, or a flag: `COROOM_LOG_LEVEL=debug` is `--log-level debug`, and the flag wins. Units end the names: `…_MS` are milliseconds, `…_BYTES` bytes. [OPERATIONS.md](OPERATIONS.md) says what to set when. This page is made of the settings themselves, by `npm run settings-doc`.",
    ...Object.entries(groups).flatMap(([title, settings]) => [
      "",
      `## ${titleOf(title)}`,
      "",
      "| variable | takes | default | meaning |",
      "|---|---|---|---|",
      ...Object.entries(settings).map(([name, setting]) => rowOf(name, setting)),
    ]),
    "",
  ].join("\n");
}

/** Roles are written as one types them. */
function titleOf(title: string): string {
  return title.includes(" ") ? title.charAt(0).toUpperCase() + title.slice(1) : title;
}

function rowOf(name: string, setting: Setting<unknown>): string {
  const fallback = setting.fallback === undefined ? "must be given" : shownDefault(setting);
  return `| ${["`" + envName(name) + "`", takenBy(setting), fallback, setting.meaning].map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

/** In the words in which it refuses what it does not take. */
function takenBy({ parse }: Setting<unknown>): string {
  try {
    parse(UNFIT);
    return "any text";
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    return error.message.replace(/^must be /, "");
  }
}
