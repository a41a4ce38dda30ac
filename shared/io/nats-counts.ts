/** Reports of counts over core NATS: told to everybody, whole each time; one that is lost is made good by the next. */

import { type CountsReport, decodeCountsReport, encodeCountsReport } from "../bus/counts-report.ts";
import type { Subjects } from "../bus/subjects.ts";
import { crashing, type NatsConnection, say } from "./nats.ts";

/** Half of what NATS carries in one message by default. */
const REPORT_BYTES_MAX = 524_288;

export function natsCounts(
  nats: NatsConnection,
  subjects: Subjects,
): { tell(report: CountsReport): void; onReport(receive: (report: CountsReport) => void): void } {
  return {
    tell: (report) => say(nats, subjects.counts, encodeCountsReport(report, REPORT_BYTES_MAX)),
    onReport: (receive) => {
      nats.subscribe(subjects.counts, {
        callback: crashing((error, msg) => {
          const report = error === null ? decodeCountsReport(msg.data) : undefined;
          if (report !== undefined) receive(report);
        }),
      });
    },
  };
}
