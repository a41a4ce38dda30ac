/**
 * Reads what apt prints and writes what apt reads; nothing here runs it. The formats are those of
 * `apt-get --simulate` and `apt-get indextargets`, both kept stable for scripts.
 */
export const DEBIAN_MIRROR = "http://deb.debian.org/debian";
export const DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** The C library and its loader come as a pair from the machine: half of a pair crashes every program. */
const NEVER_UNPACKED: ReadonlySet<string> = new Set(["libc6", "libc-bin", "libc-l10n", "locales"]);

/** The packages an install would bring in: the `Inst` lines. */
export function parseSimulatedInstall(printed: string): readonly string[] {
  const names = printed.split("\n").flatMap((line) => /^Inst (\S+) /.exec(line)?.[1] ?? []);
  return names.filter((name) => !NEVER_UNPACKED.has(name.replace(/:.*/, "")));
}

/** What apt gives as its reason: its errors come before its warnings, and the first is the cause of the rest. */
export function parseComplaint(errorOutput: string): string | undefined {
  const lines = errorOutput.split("\n");
  return (lines.find((line) => line.startsWith("E:")) ?? lines.find((line) => line.startsWith("W:")))?.slice(2).trim();
}

export const INDEX_TARGET_FORMAT = "$(REPO_URI) $(RELEASE) $(COMPONENT)";

/** Where this machine gets Debian's main archive from, so that a private mirror serves newer suites as well. */
export function parseMirror(indexTargets: string, codename: string): string {
  for (const line of indexTargets.split("\n")) {
    const [uri, release, component] = line.split(" ");
    if (uri === undefined || component !== "main" || release !== codename) continue;
    if (/\/debian\/?$/.test(uri)) return uri.replace(/\/$/, "");
  }
  return DEBIAN_MIRROR;
}

export function parseCodename(osRelease: string): string {
  return /^VERSION_CODENAME="?([\w-]+)"?$/m.exec(osRelease)?.[1] ?? "";
}

export function sourcesList(mirror: string, suite: string): string {
  return `deb [signed-by=${DEBIAN_KEYRING}] ${mirror} ${suite} main\n`;
}
