/**
 * Parses the output of apt and writes its input; it runs nothing. The formats of `apt-get --simulate` and `apt-get
 * indextargets` are stable for scripts.
 */

const DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** The machine's C library and its loader must match. Replacing one of them crashes every program. */
const NEVER_UNPACKED: ReadonlySet<string> = new Set(["libc6", "libc-bin", "libc-l10n", "locales"]);

/** The packages that an install would add: the `Inst` lines, without the unneeded ones. */
export function parseSimulatedInstall(printed: string, unneeded?: RegExp): readonly string[] {
  const names = printed.split("\n").flatMap((line) => /^Inst (\S+) /.exec(line)?.[1] ?? []);
  return names.filter((name) => {
    const bare = name.replace(/:.*/, "");
    return !NEVER_UNPACKED.has(bare) && unneeded?.test(bare) !== true;
  });
}

/** The reason that apt gives. Its errors have priority over its warnings, and the first one causes the rest. */
export function parseAptError(errorOutput: string): string | undefined {
  const lines = errorOutput.split("\n");
  return (lines.find((line) => line.startsWith("E:")) ?? lines.find((line) => line.startsWith("W:")))?.slice(2).trim();
}

export const INDEX_TARGET_FORMAT = "$(REPO_URI) $(RELEASE) $(COMPONENT)";

/**
 * The address from which this machine gets Debian's main archive. A private mirror then also serves newer suites.
 * Undefined when apt is configured without the main archive.
 */
export function parseMirror(indexTargets: string, codename: string): string | undefined {
  for (const line of indexTargets.split("\n")) {
    const [uri, release, component] = line.split(" ");
    if (uri === undefined || component !== "main" || release !== codename) continue;
    if (/\/debian\/?$/.test(uri)) return uri.replace(/\/$/, "");
  }
  return undefined;
}

export function parseCodename(osRelease: string): string {
  return /^VERSION_CODENAME="?([\w-]+)"?$/m.exec(osRelease)?.[1] ?? "";
}

export function sourcesList(mirror: string, suite: string): string {
  return `deb [signed-by=${DEBIAN_KEYRING}] ${mirror} ${suite} main\n`;
}
