/** Whether a version of Node is too old for Coroom: it would end in a stack of some library that says nothing of that. */

/** As package.json has it: of each major version that still gets fixes, the first minor one that has all that is used. */
const MINORS: Readonly<Record<number, number>> = { 20: 19, 22: 12 };
const OLDEST = 20;

/** What to do about it, or undefined where `version`, such as "20.19.4", is new enough. One that is newer than all known is taken. */
export function oldNode(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isOld = major < OLDEST || minor < (MINORS[major] ?? 0);
  return isOld
    ? `this is Node ${version}, and Coroom needs 20.19 or 22.12 at the least: install a newer one (https://nodejs.org)`
    : undefined;
}
