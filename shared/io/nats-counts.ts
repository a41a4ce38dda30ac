/**
 * Publishes and receives reports of counts over core NATS. Each report is complete, so that the next replaces a lost
 * one.
 */

import { type CountsReport, decodeCountsReport, encodeCountsReport } from "../bus/counts-report.ts";
import type { Subjects } from "../bus/subjects.ts";
import { crashing, type NatsConnection, publish } from "./nats.ts";

/** Half the maximum of a NATS message by default. */
const REPORT_BYTES_MAX = 524_288;

export function natsCounts(
  nats: NatsConnection,
  subjects: Subjects,
): { publishReport(report: CountsReport): void; onReport(receive: (report: CountsReport) => void): void } {
  return {
    publishReport: (report) => publish(nats, subjects.counts, encodeCountsReport(report, REPORT_BYTES_MAX)),
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
