/** Writes what a document room reports (room-messages.ts) to the log, the metrics and the events. */

import { assertNever } from "../../shared/assert.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { LeftOutEdits } from "./left-out-edits.ts";
import type { DocumentRoomReport, SnapshotRemedy } from "./room-messages.ts";

type ReportDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  readonly operations: Operations;
  readonly leftOut: LeftOutEdits;
};

const REMEDIES: Readonly<Record<SnapshotRemedy, string>> = {
  state: "; the room is saved again",
  log: "; the room is read again from the log, which has every record",
  backup: ": run coroom restore, or restore the object from a backup",
};

export function reportRoom(room: RoomKey, report: DocumentRoomReport, { clock, log, metrics, operations, leftOut }: ReportDeps): void {
  switch (report.kind) {
    case "set-aside":
      return log.error(
        { room, after: report.after, bytes: report.bytes },
        "the edits of a room that cannot be merged are too many to keep in memory; they stay in the log, which is not trimmed, and are read again once the room's snapshot is restored or the service restarts",
      );
    case "released-undecodable":
      return log.error(
        { room, fromStreamSeq: report.fromStreamSeq, bytes: report.bytes },
        "memory is short: the edits of a room whose checkpoint does not decode leave memory; they are read again from the log once it decodes",
      );
    case "gap-crossed":
      metrics.gaps.inc();
      return log.error(
        { room, streamSeq: report.streamSeq, after: report.after },
        "the log of a room has a hole that no checkpoint explains; the room's log is no longer trimmed",
      );
    case "record-unreadable":
      metrics.unreadable.inc();
      return log.error(
        { room, streamSeq: report.streamSeq },
        "a record of the log does not decode: check whether a newer version wrote it. The room's log is no longer trimmed",
      );
    case "writers-forgotten":
      return metrics.forgottenWriters.inc(report.count);
    case "merged":
      return metrics.merges.observe(report.ms / 1000);
    case "yjs-id-disputed": {
      const { kind: _, ...facts } = report;
      metrics.disputedYjsIds.inc();
      return operations.report({ kind: "yjs_id_disputed", room, ...facts }); // Logs too.
    }
    case "edits-refused": {
      const count = leftOut.receive(room, report.refused, clock.now());
      metrics.refusedEdits.inc(report.refused);
      if (count !== undefined) operations.report({ kind: "edits_left_out", room, count, users: [...report.users] });
      // Not an error, whose lines are not limited: a hostile writer may cause one in each of thousands of rooms.
      return log.warn(
        { room, refused: report.refused, through: report.through, users: report.users },
        "edits that are no Yjs updates, or exceed a limit, are left out of the document; the history keeps them. Check what the writers of the room send",
      );
    }
    case "merge-abandoned": {
      const { kind: _, isNew, ...facts } = report;
      metrics.mergesOverrun.inc();
      if (isNew) operations.report({ kind: "room_unmerged", room, state: "stalled", users: [...report.users] });
      return log.error(
        { room, ...facts },
        "a document was not merged within the time or the memory of a thread; its edits stay in the log, which is not trimmed: check whether a client writes what Yjs cannot read, or raise COROOM_MERGE_MS_MAX",
      );
    }
    case "merge-recovered":
      return operations.report({ kind: "room_unmerged", room, state: "merged", users: [] });
    case "snapshot-lost":
      return log.error(
        { room, object: report.object },
        `the snapshot that a checkpoint names is missing or damaged${REMEDIES[report.remedy]}`,
      );
    case "snapshot-damaged":
      return log.error({ room, object: report.object }, "a snapshot reads back different from what was written; it is not used");
    case "superseded":
      return log.warn(
        { room, revision: report.revision },
        "another document service saved this room meanwhile; continuing from its checkpoint",
      );
    case "save-ended":
      return metrics.saves.observe({ outcome: report.outcome }, report.ms / 1000);
    case "trim-ended":
      return metrics.trims.inc({ outcome: report.outcome });
    case "storage-failed":
      return log.warn({ room, cause: report.cause }, `a room waits for its storage: ${report.what}`);
    default:
      return assertNever(report);
  }
}
