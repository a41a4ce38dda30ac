/**
 * The outside programs Coroom runs: what each is called, how new it must be, and which Debian
 * packages hold it. A program is one line of data here; finding and unpacking know none by name.
 */
import type { Version } from "./version.ts";

export type BinarySpec = {
  readonly name: string;
  readonly versionMin: Version;
  /** Unpacked when the machine has none; what they depend on is worked out by apt. */
  readonly packages: readonly string[];
  /** Where the program lies inside the unpacked packages. */
  readonly executable: string;
  /**
   * Debian suites newer than the machine's own to try first. From these the packages are taken
   * alone, so it suits only programs that need nothing but libc.
   */
  readonly newerSuites: readonly string[];
  /** What a person can do where it cannot be fetched. */
  readonly remedy: string;
};

export const BINARIES = {
  natsServer: {
    name: "nats-server",
    /** Batches of direct gets, by which the log is read, came with it. */
    versionMin: [2, 11, 0],
    packages: ["nats-server"],
    executable: "usr/sbin/nats-server",
    newerSuites: ["sid", "forky", "trixie"],
    remedy: "install nats-server 2.11 or newer, or set COROOM_NATS_URL to a running one",
  },
  redisServer: {
    name: "redis-server",
    versionMin: [6, 2, 0],
    packages: ["redis-server", "redis-tools"],
    executable: "usr/bin/redis-server",
    newerSuites: [],
    remedy: "install redis-server 6.2 or newer, or set COROOM_REDIS_URL to a running one",
  },
  chromium: {
    name: "chromium",
    versionMin: [0, 0, 0],
    packages: ["chromium", "chromium-common", "fonts-dejavu-core"],
    executable: "usr/lib/chromium/chromium",
    newerSuites: [],
    remedy: "install chromium; only the browser tests need it",
  },
  promtool: {
    name: "promtool",
    versionMin: [2, 30, 0],
    packages: ["prometheus"],
    executable: "usr/bin/promtool",
    newerSuites: [],
    remedy: "install prometheus; only the tests of the alerts need it",
  },
  /** Run by a script of ours: `engines/s3-server.ts`. */
  swift: {
    name: "swift",
    versionMin: [0, 0, 0],
    packages: ["python3-swift", "python3-lxml", "python3-xattr", "python3-pyeclib", "python3-eventlet"],
    executable: "usr/lib/python3/dist-packages/swift/__init__.py",
    newerSuites: [],
    remedy: "install python3-swift; only the tests of the S3 store need it",
  },
} as const satisfies Record<string, BinarySpec>;
