/** Detects a version of Node that is too old. Otherwise the process would end with a stack trace of some library. */

/** As in package.json: the oldest accepted minor version of each supported major version. */
const MINORS: Readonly<Record<number, number>> = { 20: 19, 22: 12 };
const OLDEST = 20;

/**
 * Returns a remedy, or undefined when `version` (such as "20.19.4") is new enough. Newer unknown versions are accepted.
 */
export function oldNode(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < OLDEST || minor < (MINORS[major] ?? 0);
  return isOld
    ? `this is Node ${version}, but Coroom needs Node 20.19, 22.12 or newer. Install a newer version from https://nodejs.org`
    : undefined;
}
