/** Figures and times as the console writes them. */

export function count(number: number): string {
  return number.toLocaleString("en");
}

/** "1 room", "1,200 rooms". */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Of a share of 1. */
export function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

/** A second: whole ones from ten on, and a dash where it rounds to nothing. */
export function rate(perSecond: number): string {
  if (perSecond < 0.05) return "–";
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

/** How long ago, in one unit. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}

/** The time of day where the page is, with its seconds: to be compared with logs. */
export function clockTime(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** Names of processes, short enough for a line; the whole stands in the title. */
export function shortName(name: string): string {
  return name.length <= 14 ? name : `${name.slice(0, 9)}…${name.slice(-4)}`;
}
