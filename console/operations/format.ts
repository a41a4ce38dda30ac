/** Formats numbers, times, names and shed levels for the console. */

export function count(number: number): string {
  return number.toLocaleString("en");
}

/** "1 room", "1,200 rooms". */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** `share`: 0 to 1. */
export function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

/** Formats a rate per second: whole numbers from ten, and a dash for a rate near zero. */
export function rate(perSecond: number): string {
  if (perSecond < 0.05) return "–";
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

/** Formats seconds with a unit that fits: "0.4 ms", "12 ms", "1.5 s". */
export function duration(seconds: number): string {
  const ms = seconds * 1_000;
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return seconds < 60 ? `${Math.round(seconds * 10) / 10} s` : `${Math.round(seconds / 60)} min`;
}

const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB"] as const;

/** Formats a number of bytes: "812 KB", "1.4 GB". */
export function bytes(number: number): string {
  const unit = number < 1 ? 0 : Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(number) / 3));
  const shown = number / 1_000 ** unit;
  return `${shown < 10 && unit > 0 ? Math.round(shown * 10) / 10 : Math.round(shown)} ${BYTE_UNITS[unit]!}`;
}

/** Formats an elapsed time in one unit. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}

/** Formats the local time of day with seconds, so that it can be compared with logs. */
export function clockTime(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** Shortens the name of a process. The tooltip shows the full name. */
export function shortName(name: string): string {
  return name.length <= 14 ? name : `${name.slice(0, 9)}…${name.slice(-4)}`;
}

const NAMES_MAX = 3;

/** "a, b", "a, b, c and 4 others". */
export function someOf(names: readonly string[]): string {
  const rest = names.length - NAMES_MAX;
  return names.slice(0, NAMES_MAX).join(", ") + (rest <= 0 ? "" : ` and ${counted(rest, "other")}`);
}

/** The presence that a gateway drops under pressure, by shed level. Edits are never dropped. */
const LEVELS = [
  "nothing",
  "spectators' presence above 5 updates per second",
  "spectators' presence above one update per two seconds",
  "viewports of other people",
  "presence above 10 updates per second",
  "presence above 5 updates per second",
  "presence above one update per two seconds",
] as const;

/**
 * `level`: 0 to 6, or higher from a gateway of a later version. Each level also drops everything that lower levels
 * drop.
 */
export function droppedAt(level: number): string {
  return LEVELS[level] ?? LEVELS.at(-1)!;
}

/** The restrictions of a throttled room, by level. */
const THROTTLES = [
  "nothing",
  "presence 10 times per second",
  "presence 5 times per second",
  "presence every two seconds",
  "presence every two seconds, later acknowledgements",
  "presence every two seconds, later acknowledgements, no new members",
] as const;

/** `level`: 1 to 5, or higher from a room server of a later version. No edit of a throttled room is refused. */
export function throttledAt(level: number): string {
  return THROTTLES[level] ?? THROTTLES.at(-1)!;
}

/** Lists show the restriction of a room as the number that clients see, after the three levels of spectators. */
export function throttleOf(heldBack: number): string {
  return throttledAt(Math.max(1, heldBack - 3));
}
