/** Program versions, as `--version` prints them: the first dotted number in the text. */
export type Version = readonly [major: number, minor: number, patch: number];

export function parseVersion(printed: string): Version | undefined {
  const match = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(printed);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
}

export function isAtLeast(version: Version, least: Version): boolean {
  for (const [place, part] of version.entries()) {
    const wanted = least[place] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

export function showVersion(version: Version): string {
  return version.join(".");
}
