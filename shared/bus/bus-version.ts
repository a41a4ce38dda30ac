/**
 * The version of the bus: of everything that processes send each other over NATS and store for each other. A process
 * refuses to start beside a process, or on stored data, that it cannot work with. The rule is symmetric: two processes
 * of versions 2 and 3 work together only if the later one accepts 2 as its oldest version.
 *
 * `bus-version-guard.test.ts` fails when a form changes. A release that writes what only its own version reads
 * would end rollbacks, so a new form needs two releases: the first reads it, the second writes it.
 */

import { z } from "zod";

/** Raise it with a change that a release of the version before does not understand. 1: releases that do not announce it. */
export const BUS_VERSION = 2;
/**
 * The oldest version that works with this release: it understands all messages and data that this release writes, and
 * this release understands everything of it. At most the version of the previous release, so that a rollback works.
 */
export const BUS_VERSION_OLDEST = 1;

const busVersion = z.int().positive();
export const BusRange = z.object({ version: busVersion, oldest: busVersion });
export type BusRange = z.output<typeof BusRange>;

export const OWN_BUS: BusRange = { version: BUS_VERSION, oldest: BUS_VERSION_OLDEST };
/** Processes and logs of releases that do not announce their version. */
export const UNSTATED_BUS: BusRange = { version: 1, oldest: 1 };

const printable = (length: number) => z.string().regex(new RegExp(`^[ -~]{1,${length}}$`));

/** Part of every announcement. `release`: the version of Coroom. */
const release = printable(32);

/**
 * A process to all processes. `isStarting`: the process waits for those that cannot work with it. They answer with the
 * same message, and nobody else does.
 */
export const ProcessAnnouncement = z.object({
  id: printable(64),
  roles: z.array(printable(32)).min(1).max(16),
  host: printable(64),
  pid: z.int().positive(),
  release,
  bus: BusRange,
  isStarting: z.boolean(),
});
export type ProcessAnnouncement = z.output<typeof ProcessAnnouncement>;

/**
 * Stored with the log: the highest version, and the highest oldest version, of all releases that wrote to it. So stored
 * data counts as one more process. `release`: the release that raised one of them last.
 */
export const LogBus = BusRange.extend({ release });
export type LogBus = z.output<typeof LogBus>;

/** One release, as it starts. */
export type BusRelease = { readonly release: string; readonly bus: BusRange };

export function canWorkTogether(a: BusRange, b: BusRange): boolean {
  return a.version >= b.oldest && b.version >= a.oldest;
}

/** Undefined: nothing is raised. */
export function raisedLogBus(stored: LogBus | undefined, { release: own, bus }: BusRelease): LogBus | undefined {
  const { version, oldest } = stored ?? UNSTATED_BUS;
  if (bus.version <= version && bus.oldest <= oldest) return undefined;
  return { version: Math.max(version, bus.version), oldest: Math.max(oldest, bus.oldest), release: own };
}

const SEE = "docs/operations/upgrade.md lists the releases of each bus version";
const NAMED_MAX = 3;

/** Why a process must not start beside `others`. Undefined: it works with all of them. */
export function refusalBeside(own: BusRelease, others: readonly ProcessAnnouncement[]): string | undefined {
  const strangers = others.filter(({ bus }) => !canWorkTogether(own.bus, bus));
  if (strangers.length === 0) return undefined;
  const more = strangers.length > NAMED_MAX ? ` and ${strangers.length - NAMED_MAX} others` : "";
  const named = strangers.slice(0, NAMED_MAX).map((other) => `${processName(other)}, of ${releaseName(other)}`);
  return `${releaseName(own)} cannot run beside ${named.join("; ")}${more}. ${remedyFor(own.bus, strangers)}. ${SEE}`;
}

function remedyFor(own: BusRange, strangers: readonly ProcessAnnouncement[]): string {
  const isOlder = strangers.some(({ bus }) => bus.oldest > own.version);
  return isOlder
    ? `Start a release with bus version ${Math.max(...strangers.map(({ bus }) => bus.oldest))} or later here, or stop the other processes first`
    : `Replace the other processes by a release with bus version ${own.oldest} first, or stop them`;
}

/** Why a process must not use the log. `stored`: undefined if no release has stated a version. */
export function refusalOfLog(own: BusRelease, stored: LogBus | undefined): string | undefined {
  const bus = stored ?? UNSTATED_BUS;
  if (canWorkTogether(own.bus, bus)) return undefined;
  const by = stored === undefined ? "by releases without a bus version" : `by ${releaseName({ release: stored.release, bus })}`;
  const remedy =
    bus.oldest > own.bus.version
      ? `Start a release with bus version ${bus.oldest} or later. An earlier one needs a backup from before the upgrade`
      : `Upgrade to a release with bus version ${own.bus.oldest} first, and then to this one`;
  return `${releaseName(own)} cannot use the data of this environment, which was written ${by}. ${remedy}. ${SEE}`;
}

export function processName({ roles, host, pid }: Pick<ProcessAnnouncement, "roles" | "host" | "pid">): string {
  return `${roles.join("+")} on ${host}, process ${pid}`;
}

function releaseName({ release: name, bus: { version, oldest } }: BusRelease): string {
  return `release ${name} (bus version ${version}${oldest < version ? `, works with ${oldest} and later` : ""})`;
}
