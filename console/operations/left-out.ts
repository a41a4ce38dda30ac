/** The drop order, in words: what a gateway tells nobody while it is behind. Edits are never left out. */

const LEVELS = [
  "nothing",
  "spectators' presence above 5 times a second",
  "spectators' presence, but for who comes and goes",
  "where others look",
  "presence above 10 times a second",
  "presence above 5 times a second",
  "all presence, but for who comes and goes",
] as const;

/** `level`: 0 to 6; of a later version's gateway it may be higher. Each level leaves out what those below it do as well. */
export function leftOut(level: number): string {
  return LEVELS[level] ?? LEVELS.at(-1)!;
}
