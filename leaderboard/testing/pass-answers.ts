/** Answers the requests of a pass from boards in memory, so that a test can follow a pass without waiting. */

import type { RoomKey } from "../../shared/ids.ts";
import { assertNever } from "../../shared/assert.ts";
import { type CountedPosition, type BoardsDump, isAhead, NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import type { BoardRoomOutcome, BoardRoomRequest } from "../counting/board-room-messages.ts";
import type { PassOutcome, PassRequest } from "../counting/pass-messages.ts";
import type { SentinelWrite, CheckpointMark } from "../ports.ts";

const NO_MARK: CheckpointMark = { seq: NOTHING_APPLIED.seq, activity: 0, windows: [], revision: 0, isDeleted: false };

export class PassAnswers {
  /** The entries of each room that Redis has counted. */
  readonly applied = new Map<RoomKey, CountedPosition>();
  readonly checkpoints = new Map<RoomKey, { readonly dump: BoardsDump; readonly revision: number }>();
  readonly ends = { edits: 0, activities: 0 };
  beat: SentinelWrite = { kind: "kept", sentinel: { service: "s", number: 1 } };

  answer(request: PassRequest): PassOutcome {
    switch (request.kind) {
      case "read-forgotten":
        return { kind: "forgotten-read", through: 0 };
      case "read-progress":
        return { kind: "progress-read", report: undefined };
      case "write-sentinel":
        return { kind: "sentinel-written", beat: this.beat };
      case "begin-progress":
        this.beat = { kind: "kept", sentinel: { service: "s", number: 1 } };
        return { kind: "progress-begun", sentinel: this.beat.sentinel };
      case "list-checkpoints":
        return { kind: "checkpoints-listed", rooms: [...this.checkpoints.keys()] };
      case "read-ends":
        return { kind: "ends-read", ...this.ends };
      case "read-last-activity":
        return { kind: "last-activity-read", last: this.ends.activities };
      case "read-activities-end":
        return { kind: "activities-end-read", end: this.ends.activities };
      case "read-activities-now":
        return { kind: "activities-read-now" };
      case "skip-activities":
        return { kind: "activities-skipped", through: request.through };
      case "forget-activities":
        return { kind: "activities-forgotten", through: request.through };
      case "try-checkpoint":
        return { kind: "checkpoint-tried", room: request.room, isReadable: false };
      case "sweep":
        return { kind: "swept" };
      case "room":
        return { kind: "room", room: request.room, outcome: this.answerRoom(request.room.key, request.request) };
      case "archiving":
        return { kind: "archiving", outcome: { kind: "closings-found", closings: [] } };
      default:
        return assertNever(request);
    }
  }

  answerRoom(room: RoomKey, request: BoardRoomRequest): BoardRoomOutcome {
    const applied = this.applied.get(room);
    switch (request.kind) {
      case "look-up": {
        const saved = this.checkpoints.get(room);
        const mark = saved === undefined ? NO_MARK : { ...NO_MARK, ...markOf(saved.dump), revision: saved.revision };
        return { kind: "looked-up", stored: applied && { applied, uses: NO_USES }, mark };
      }
      case "mark-deleted":
        return { kind: "deletion-marked" };
      case "read-checkpoint":
        return { kind: "checkpoint-read", dump: this.checkpoints.get(room)?.dump };
      case "load":
        return { kind: "loaded", stored: applied && { applied, uses: NO_USES } };
      case "open-windows":
        return { kind: "windows-opened" };
      case "restore":
        this.applied.set(room, request.dump.applied);
        return { kind: "restored" };
      case "apply-batch": {
        const { after, applied: next } = request.batch;
        if (isAhead(applied ?? NOTHING_APPLIED, after)) {
          return { kind: "batch-applied", write: { kind: "stale", counted: applied ?? NOTHING_APPLIED } };
        }
        this.applied.set(room, next);
        return { kind: "batch-applied", write: { kind: "written" } };
      }
      case "send-totals":
        return { kind: "totals-sent" };
      case "dump":
        return { kind: "dumped", dump: applied && { applied, uses: NO_USES, names: new Map(), boards: [] } };
      case "write-checkpoint": {
        const revision = request.revision + 1;
        this.checkpoints.set(room, { dump: request.dump, revision });
        return { kind: "checkpoint-written", write: { kind: "written", revision } };
      }
      case "remove":
        return { kind: "removed", counted: [], wallNow: NOTHING_APPLIED.time };
      default:
        return assertNever(request);
    }
  }
}

function markOf({ applied: { seq, activity }, boards }: BoardsDump): Pick<CheckpointMark, "seq" | "activity" | "windows"> {
  return { seq, activity, windows: boards.map(({ window }) => window) };
}
