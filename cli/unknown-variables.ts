/**
 * A misspelt variable must not be read as "use the default": `COROOM_PRODUCTON=true` would leave open what production
 * closes. But a variable may be of a version before or after this one, in an environment that serves both while they
 * are exchanged, or of whatever else runs there: so what is one letter off is refused, and the rest is warned of. That
 * no two settings are one letter apart is held by a test: no other version's setting is taken for a misspelling.
 */

import { envName, type Given, SettingError } from "../shared/config.ts";
import type { Command, Say } from "./command.ts";

/** What further away is meant is not guessed at. */
const SUGGESTED_DISTANCE_MAX = 4;

/** No variable that is empty counts. */
export function refuseMisspelt(env: Given["env"], commands: readonly Pick<Command, "settings">[], warn: Say): void {
  const known = knownVariables(commands);
  const unknown = Object.keys(env).filter(
    (name) => /^coroom_/i.test(name) && !known.includes(name) && env[name]?.trim() !== "" && !isOfOrchestrator(name),
  );
  const nearest = unknown.map((name) => ({ name, ...nearestOf(name, known) }));
  const misspelt = nearest.filter(({ distance }) => distance <= 1);
  if (misspelt.length > 0)
    throw new SettingError(misspelt.map(({ name, meant }) => `there is no setting ${name}: ${meant} is meant, or take it away`).join("\n"));
  for (const { name, meant, distance } of nearest) {
    const suggested = known.find((whole) => whole.startsWith(name)) ?? (distance <= SUGGESTED_DISTANCE_MAX ? meant : undefined);
    warn(
      `${name} is no setting of this version and does nothing${suggested === undefined ? ", see coroom start --help" : `: is ${suggested} meant?`}`,
    );
  }
}

/** Of all commands: an environment is for more than one of them. */
export function knownVariables(commands: readonly Pick<Command, "settings">[]): readonly string[] {
  const names = commands.flatMap(({ settings }) =>
    Object.entries(settings).flatMap(([name, { flagOnly }]) => (flagOnly === true ? [] : [name])),
  );
  return [...new Set(names)].map(envName);
}

/** What Kubernetes and Docker tell of a service that is called coroom. */
function isOfOrchestrator(name: string): boolean {
  return /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)/.test(name);
}

function nearestOf(name: string, known: readonly string[]): { meant: string; distance: number } {
  return known
    .map((meant) => ({ meant, distance: distanceBetween(name.toUpperCase(), meant) }))
    .reduce((best, next) => (next.distance < best.distance ? next : best), { meant: "", distance: Number.POSITIVE_INFINITY });
}

/** Letters to put in, take out, replace, or exchange with the next one. */
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
