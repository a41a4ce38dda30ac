/** How current boards are, by the progress reports of the leaderboards that count them. */

import type { UnixMillis } from "../../shared/ids.ts";
import { type CountedPosition, NOTHING_APPLIED } from "../boards/board.ts";
import type { ProgressReport } from "../ports.ts";

/** A tenant's boards contain what its rooms' leaderboards have sent. */
export function appliedOfTenant(report: ProgressReport | undefined): CountedPosition {
  return { ...NOTHING_APPLIED, time: report?.totalsSent ?? NOTHING_APPLIED.time };
}

/**
 * The progress of all partitions together, because a tenant's rooms are in all of them. Undefined: a partition has not
 * reported.
 */
export function leastProgress(reports: readonly (ProgressReport | undefined)[]): ProgressReport | undefined {
  return reports.reduce((least, report) => {
    if (least === undefined || report === undefined) return undefined;
    return {
      service: report.service,
      through: Math.min(least.through, report.through) as UnixMillis,
      totalsSent: Math.min(least.totalsSent, report.totalsSent) as UnixMillis,
      isRebuilding: least.isRebuilding || report.isRebuilding,
    };
  });
}

/** Whether the boards of a partition lag by more than the maximum. */
export function isProgressBehind(
  report: ProgressReport | undefined,
  wallNow: UnixMillis,
  { boardBehindMsMax }: { readonly boardBehindMsMax: number },
): boolean {
  return report === undefined || report.isRebuilding || wallNow - report.through > boardBehindMsMax;
}
