import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import type { ProgressReport } from "../ports.ts";
import { leastProgress } from "./progress-reports.ts";

const reportOf = (through: number, totalsSent: number, isRebuilding = false): ProgressReport => ({
  service: "s",
  through: through as UnixMillis,
  totalsSent: totalsSent as UnixMillis,
  isRebuilding,
});

test("[BLEAST1] a tenant's boards are as current as the partition that is least so, and unknown if one has not reported", () => {
  expect(leastProgress([reportOf(9, 3), reportOf(5, 4)])).toMatchObject({ through: 5, totalsSent: 3, isRebuilding: false });
  expect(leastProgress([reportOf(9, 3, true), reportOf(5, 4)])?.isRebuilding).toBe(true);
  expect(leastProgress([undefined, reportOf(9, 3)])).toBeUndefined();
  expect(leastProgress([reportOf(9, 3), undefined, reportOf(9, 3)])).toBeUndefined();
});
