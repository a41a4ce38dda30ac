import { expect, test } from "vitest";

import {
  type BusRange,
  canWorkTogether,
  type ProcessAnnouncement,
  raisedLogBus,
  refusalBeside,
  refusalOfLog,
  UNSTATED_BUS,
} from "./bus-version.ts";

const releaseOf = (version: number, oldest: number) => ({ release: `0.${version}.0`, bus: { version, oldest } });
const processOf = (version: number, oldest: number, index = 1): ProcessAnnouncement => ({
  ...releaseOf(version, oldest),
  id: `p${index}`,
  roles: ["room-server"],
  host: `web-${index}`,
  pid: 100 + index,
  isStarting: false,
});

test("[BUSV1] two processes work together if neither is older than the oldest version of the other", () => {
  const cases: [BusRange, BusRange, boolean][] = [
    [{ version: 2, oldest: 1 }, UNSTATED_BUS, true],
    [{ version: 3, oldest: 2 }, { version: 2, oldest: 1 }, true],
    [{ version: 3, oldest: 2 }, UNSTATED_BUS, false],
    [{ version: 2, oldest: 2 }, { version: 2, oldest: 1 }, true],
    [{ version: 9, oldest: 9 }, { version: 8, oldest: 1 }, false],
  ];
  for (const [a, b, expected] of cases) expect([canWorkTogether(a, b), canWorkTogether(b, a)]).toEqual([expected, expected]);
});

test("[BUSV2] a starting process is refused beside those that it cannot work with, and the error names them and the remedy", () => {
  expect(refusalBeside(releaseOf(3, 2), [processOf(2, 1), processOf(4, 3)])).toBeUndefined();
  expect(refusalBeside(releaseOf(3, 2), [processOf(2, 1), processOf(1, 1, 7)])).toBe(
    "release 0.3.0 (bus version 3, works with 2 and later) cannot run beside room-server on web-7, process 107, of release 0.1.0 (bus version 1). Replace the other processes by a release with bus version 2 first, or stop them. docs/operations/upgrade.md lists the releases of each bus version",
  );
  expect(refusalBeside(releaseOf(1, 1), [processOf(5, 4)])).toMatch(
    /Start a release with bus version 4 or later here, or stop the other processes first/,
  );
  expect(refusalBeside(releaseOf(3, 2), [processOf(1, 1), processOf(6, 5), processOf(5, 4)])).toMatch(
    /process 101, of release 0\.5\.0 \(bus version 5, works with 4 and later\)\. Start a release with bus version 5 or later here/,
  );
  const five = Array.from({ length: 5 }, (_, index) => processOf(1, 1, index));
  expect(refusalBeside(releaseOf(3, 2), five)).toMatch(
    /web-0.*web-1.*web-2, process 102, of release 0\.1\.0 \(bus version 1\) and 2 others\./,
  );
});

test("[BUSV3] after an upgrade the log permits the release before, and refuses the one before that", () => {
  const releases = [releaseOf(1, 1), releaseOf(2, 1), releaseOf(3, 2), releaseOf(4, 3)];
  let stored = raisedLogBus(undefined, releases[0]!);
  expect(stored).toBeUndefined();
  for (const [index, release] of releases.entries()) {
    expect(refusalOfLog(release, stored)).toBeUndefined();
    stored = raisedLogBus(stored, release) ?? stored;
    if (index > 0) expect(refusalOfLog(releases[index - 1]!, stored)).toBeUndefined();
    expect(raisedLogBus(stored, releases[Math.max(0, index - 1)]!)).toBeUndefined(); // A rollback lowers nothing.
  }
  expect(refusalOfLog(releases[1]!, stored)).toBe(
    "release 0.2.0 (bus version 2, works with 1 and later) cannot use the data of this environment, which was written by release 0.4.0 (bus version 4, works with 3 and later). Start a release with bus version 3 or later. An earlier one needs a backup from before the upgrade. docs/operations/upgrade.md lists the releases of each bus version",
  );
});

test("[BUSV4] a release that skips another one is refused, also after releases that state no version", () => {
  expect(refusalOfLog(releaseOf(4, 3), { version: 2, oldest: 1, release: "0.2.0" })).toMatch(
    /written by release 0\.2\.0 .*Upgrade to a release with bus version 3 first, and then to this one/,
  );
  expect(refusalOfLog(releaseOf(3, 2), undefined)).toMatch(
    /written by releases without a bus version\. Upgrade to a release with bus version 2 first/,
  );
});

test("[BUSV5] the highest of both numbers stays with the log", () => {
  const stored = { version: 5, oldest: 2, release: "0.5.0" };
  expect(raisedLogBus(stored, releaseOf(4, 3))).toEqual({ version: 5, oldest: 3, release: "0.4.0" });
  expect(raisedLogBus(stored, releaseOf(5, 2))).toBeUndefined();
});
