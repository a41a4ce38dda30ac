/**
 * Refuses misspelt variables. `COROOM_PRODUCTON=true` must not silently mean "not in production". A variable that
 * differs from a setting by one letter is refused. Other unknown variables only cause a warning, because they may belong
 * to another version of Coroom in the same environment. A test checks that no two settings differ by one letter only.
 */

import { envName, readableSettings, type SettingSources, SettingError } from "../shared/settings/settings.ts";
import type { CliCommand, PrintLine } from "./command.ts";

/** Names that differ by more letters are not suggested: COROOM_CLAIM_MS_MAX, of an earlier version, differs from COROOM_DRAIN_MS_MAX by three. */
const SUGGESTED_DISTANCE_MAX = 2;

/** Throws SettingError for misspelt variables and warns of unknown ones. Empty variables are ignored. */
export function refuseMisspelt(env: SettingSources["env"], commands: readonly Pick<CliCommand, "settings">[], warn: PrintLine): void {
  const known = knownVariables(commands);
  const unknown = Object.keys(env).filter(
    (name) => /^coroom_/i.test(name) && !known.includes(name) && env[name]?.trim() !== "" && !isOfOrchestrator(name),
  );
  const nearest = unknown.map((name) => ({ name, ...nearestOf(name, known) }));
  const misspelt = nearest.filter(({ distance }) => distance <= 1);
  if (misspelt.length > 0)
    throw new SettingError(
      misspelt.map(({ name, meant }) => `unknown setting ${name}. Did you mean ${meant}? Otherwise remove it.`).join("\n"),
    );
  for (const { name, meant, distance } of nearest) {
    const suggested = known.find((setting) => setting.startsWith(name)) ?? (distance <= SUGGESTED_DISTANCE_MAX ? meant : undefined);
    warn(
      `unknown setting ${name} is ignored.${suggested === undefined ? " Run coroom start --help for the list." : ` Did you mean ${suggested}?`}`,
    );
  }
}

/** The variables of all commands, because one environment serves several commands. */
export function knownVariables(commands: readonly Pick<CliCommand, "settings">[]): readonly string[] {
  const names = commands.flatMap(({ settings }) =>
    readableSettings(settings).flatMap(([name, { flagOnly }]) => (flagOnly === true ? [] : [name])),
  );
  return [...new Set(names)].map(envName);
}

/** Kubernetes and Docker set such variables for a service that is named coroom. */
function isOfOrchestrator(name: string): boolean {
  return /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/.test(name);
}

/** Returns " Did you mean …?" if a known name is near, and otherwise an empty text. */
export function suggestionFor(name: string, known: readonly string[]): string {
  const { meant, distance } = nearestOf(name, known, (word) => word);
  return distance <= Math.min(SUGGESTED_DISTANCE_MAX, Math.ceil(name.length / 3)) ? ` Did you mean ${meant}?` : "";
}

function nearestOf(
  name: string,
  known: readonly string[],
  spelt = (word: string): string => word.toUpperCase(),
): { meant: string; distance: number } {
  return known
    .map((meant) => ({ meant, distance: distanceBetween(spelt(name), meant) }))
    .reduce((best, next) => (next.distance < best.distance ? next : best), { meant: "", distance: Number.POSITIVE_INFINITY });
}

/** Number of letters to insert, delete, replace or swap with their neighbour (Damerau-Levenshtein distance). */
export function distanceBetween(one: string, other: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: other.length + 1 }, (_, index) => index)];
  for (let at = 1; at <= one.length; at++) {
    const next = [at];
    for (let to = 1; to <= other.length; to++) {
      const replaced = row[to - 1]! + (one[at - 1] === other[to - 1] ? 0 : 1);
      const isExchanged = at > 1 && to > 1 && one[at - 1] === other[to - 2] && one[at - 2] === other[to - 1];
      next.push(Math.min(replaced, row[to]! + 1, next[to - 1]! + 1, isExchanged ? before[to - 2]! + 1 : Number.POSITIVE_INFINITY));
    }
    [before, row] = [row, next];
  }
  return row[other.length]!;
}
