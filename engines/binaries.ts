/**
 * The external programs that Coroom runs: their names, minimum versions and Debian packages. Other files know no
 * program by name.
 */

export type BinarySpec = {
  readonly name: string;
  /** Programs of other names that serve as well, if the machine has one. */
  readonly otherNames?: readonly string[];
  readonly versionMin: Version;
  /** Default: `--version`. */
  readonly versionFlag?: string;
  /** Unpacked when the machine lacks the program. apt adds their dependencies. */
  readonly packages: readonly string[];
  /** Dependencies that the program does not load as the tests run it, and that are large or many. */
  readonly unneeded?: RegExp;
  /**
   * Path of the program inside the unpacked packages. A `*` is the version in a folder's name: the highest is used.
   * Such a folder is not on the PATH, so the machine's own is also looked for under this path.
   */
  readonly executable: string;
  /**
   * Newer Debian suites to try first. Their packages are taken without dependencies, so the program must need only
   * libc.
   */
  readonly newerSuites: readonly string[];
  /** The remedy that a user sees when the download fails. */
  readonly remedy: string;
};

export const BINARIES = {
  natsServer: {
    name: "nats-server",
    /** The first version with batched direct gets, which the log reader needs. */
    versionMin: [2, 11, 0],
    packages: ["nats-server"],
    executable: "usr/sbin/nats-server",
    newerSuites: ["sid", "forky", "trixie"],
    remedy: "install nats-server 2.11 or newer (macOS: brew install nats-server), or set COROOM_NATS_URL to a running one",
  },
  redisServer: {
    name: "redis-server",
    versionMin: [6, 2, 0],
    packages: ["redis-server", "redis-tools"],
    executable: "usr/bin/redis-server",
    newerSuites: [],
    remedy: "install redis-server 6.2 or newer (macOS: brew install redis), or set COROOM_REDIS_URL to a running one",
  },
  /** Chromium without windows, profiles and extensions. A page opens with a third of the CPU. */
  chromium: {
    name: "chromium-headless-shell",
    otherNames: ["chromium"],
    versionMin: [0, 0, 0],
    packages: ["chromium-headless-shell", "chromium-common", "fonts-dejavu-core"],
    executable: "usr/lib/chromium/chromium-headless-shell",
    newerSuites: [],
    remedy: "install chromium or chromium-headless-shell; only the browser tests need it",
  },
  firefox: {
    name: "firefox-esr",
    /** Tested with 153. Releases before 140 may lack commands of WebDriver BiDi. */
    versionMin: [140, 0, 0],
    packages: ["firefox-esr", "fonts-dejavu-core"],
    executable: "usr/lib/firefox-esr/firefox-esr",
    newerSuites: [],
    remedy: "install firefox-esr; only the tests of the examples in Firefox need it",
  },
  haproxy: {
    name: "haproxy",
    versionMin: [2, 4, 0],
    versionFlag: "-v",
    packages: ["haproxy"],
    executable: "usr/sbin/haproxy",
    newerSuites: [],
    remedy: "install haproxy; only the tests of the balancer need it",
  },
  promtool: {
    name: "promtool",
    versionMin: [2, 30, 0],
    packages: ["prometheus"],
    executable: "usr/bin/promtool",
    newerSuites: [],
    remedy: "install prometheus; only the tests of the alerts need it",
  },
  postgres: {
    name: "postgres",
    versionMin: [13, 0, 0],
    /** A regular expression of apt: the name contains the version, which each suite has only one of. */
    packages: ["^postgresql-[0-9]+$"],
    unneeded: /^(postgresql-(client|common).*|lib(llvm|z3|perl|.*-perl$).*|perl.*|openssl|ssl-cert|ucf|netbase|sensible-utils)$/,
    executable: "usr/lib/postgresql/*/bin/postgres",
    newerSuites: [],
    remedy: "install postgresql 13 or newer; only the tests of the PostgreSQL store need it",
  },
  /** Started by a script of this repository: `engines/s3-server.ts`. */
  swift: {
    name: "swift",
    versionMin: [0, 0, 0],
    packages: ["python3-swift", "python3-lxml", "python3-xattr", "python3-pyeclib", "python3-eventlet"],
    executable: "usr/lib/python3/dist-packages/swift/__init__.py",
    newerSuites: [],
    remedy: "install python3-swift; only the tests of the S3 store need it",
  },
} as const satisfies Record<string, BinarySpec>;

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
