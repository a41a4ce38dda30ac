/**
 * Looks up a room's stored boards, step by step, and restores them from the checkpoint if Redis has less. Before boards
 * are restored, their windows are registered, as if each window had just been counted.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { BoardRemoval } from "../archiving/removal.ts";
import { type CountedPosition, type BoardsDump, isAhead, NO_USES, NOTHING_APPLIED, type Uses } from "../boards/board.ts";
import type { CheckpointMark, StoredBoards } from "../ports.ts";
import type { BoardRoomEffect, OpeningOutcome } from "./board-room-messages.ts";

/** `known`: the room continues to count at this mark. `over`: the room is deleted. */
type OpeningStep =
  | { readonly kind: "next"; readonly effect: BoardRoomEffect }
  | { readonly kind: "known"; readonly applied: CountedPosition; readonly uses: Uses }
  | { readonly kind: "over" };

export class RoomOpening {
  readonly #key: RoomKey;
  /** The boards that are being restored. */
  #restoring: BoardsDump | undefined;
  #removal: BoardRemoval | undefined;

  constructor(key: RoomKey) {
    this.#key = key;
  }

  /** `isDeleted`: the log's deletion record arrived in the meantime. */
  receiveOutcome(input: OpeningOutcome, isDeleted: boolean): OpeningStep {
    switch (input.kind) {
      case "looked-up":
        return this.#receiveLookUp(input.stored, input.mark, isDeleted);
      case "deletion-marked":
        return { kind: "over" };
      case "restored":
        return next({ kind: "load" });
      case "checkpoint-read":
        return input.dump === undefined ? next({ kind: "load" }) : this.#openWindows(input.dump);
      case "windows-opened":
        assert(this.#restoring !== undefined, "windows are registered for boards that are restored");
        return next({ kind: "restore", dump: this.#restoring });
      case "loaded":
        if (input.stored !== "deleted") return known(input.stored);
        return next({ kind: "fail", reason: "stale", message: `room ${this.#key} was deleted while its boards were looked up` });
      case "removed": {
        const effect = this.#removal?.receiveRemoved(input);
        return effect === undefined ? { kind: "over" } : next(effect);
      }
      default:
        return assertNever(input);
    }
  }

  #receiveLookUp(stored: StoredBoards, mark: CheckpointMark, isDeleted: boolean): OpeningStep {
    if (mark.isDeleted || stored === "deleted") return this.#openDeleted(stored);
    if (isDeleted) return { kind: "over" };
    return isAhead(mark, stored?.applied ?? NOTHING_APPLIED) ? next({ kind: "read-checkpoint" }) : known(stored);
  }

  /** If Redis lost the mark of the deletion, the mark is set again. If Redis has boards of the room, a backup brought them back. */
  #openDeleted(stored: StoredBoards): OpeningStep {
    if (stored === "deleted") return { kind: "over" };
    if (stored === undefined) return next({ kind: "mark-deleted" });
    this.#removal = new BoardRemoval();
    return next(this.#removal.begin());
  }

  #openWindows(dump: BoardsDump): OpeningStep {
    this.#restoring = dump;
    return next({ kind: "open-windows", windows: dump.boards.map(({ window }) => window) });
  }
}

function next(effect: BoardRoomEffect): OpeningStep {
  return { kind: "next", effect };
}

function known(stored: Exclude<StoredBoards, "deleted">): OpeningStep {
  const { applied, uses } = stored ?? { applied: NOTHING_APPLIED, uses: NO_USES };
  return { kind: "known", applied, uses };
}
