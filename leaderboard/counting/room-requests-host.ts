/** Carries out what a room that is counted wants, one port call for each request, and returns the outcome. */

import { assertNever } from "../../shared/assert.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { RemovalEffect } from "../archiving/removal.ts";
import type { Window } from "../boards/windows.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { ActivityRemoval, Archive, BoardStore, BoardCheckpoints, Closings, TenantBoards } from "../ports.ts";
import type { BoardRoomOutcome, BoardRoomRequest } from "./board-room-messages.ts";

export type BoardRoomPorts = {
  readonly boards: BoardStore;
  readonly closings: Closings;
  readonly checkpoints: BoardCheckpoints;
  readonly tenants: Pick<TenantBoards, "meet" | "tell" | "remove">;
  readonly archive: Pick<Archive, "remove">;
  readonly activityRemoval: ActivityRemoval;
};
export type BoardRoomDeps = {
  readonly partition: number;
  readonly clock: Clock;
  readonly metrics: Pick<LeaderboardMetrics, "batches" | "checkpoints" | "restores">;
};

export async function carryOutRoom(
  room: RoomKey,
  request: BoardRoomRequest,
  ports: BoardRoomPorts,
  deps: BoardRoomDeps,
): Promise<BoardRoomOutcome> {
  const { boards, checkpoints, closings, tenants } = ports;
  switch (request.kind) {
    case "look-up":
      return unlessUndecodable(async () => {
        const [stored, mark] = await Promise.all([boards.load(room), checkpoints.mark(room)]);
        return { kind: "looked-up", stored, mark };
      });
    case "mark-deleted":
      await boards.remove(room, []);
      return { kind: "deletion-marked" };
    case "read-checkpoint":
      return unlessUndecodable(async () => ({ kind: "checkpoint-read", dump: await checkpoints.read(room) }));
    case "load":
      return { kind: "loaded", stored: await boards.load(room) };
    case "open-windows":
      await closings.open(deps.partition, room, request.windows);
      return { kind: "windows-opened" };
    case "add-users":
      await tenants.meet(room, request.windows, request.users);
      return { kind: "users-added" };
    case "restore":
      if ((await boards.restore(room, request.dump)).kind === "written") deps.metrics.restores.inc();
      return { kind: "restored" };
    case "apply-batch": {
      const endTimer = deps.metrics.batches.startTimer();
      const write = await boards.apply(room, request.batch);
      endTimer();
      return { kind: "batch-applied", write };
    }
    case "send-totals":
      await tenants.tell(room, request.windows);
      return { kind: "totals-sent" };
    case "dump":
      return { kind: "dumped", dump: await boards.dump(room, request.windows) };
    case "write-checkpoint": {
      const endTimer = deps.metrics.checkpoints.startTimer();
      const write = await checkpoints.write(room, request.dump, request.revision);
      endTimer({ outcome: write.kind });
      return { kind: "checkpoint-written", write };
    }
    case "remove":
      return { kind: "removed", counted: await remove(room, request, ports, deps.partition), wallNow: deps.clock.wallNow() };
    default:
      return assertNever(request);
  }
}

async function unlessUndecodable(work: () => Promise<BoardRoomOutcome>): Promise<BoardRoomOutcome> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof UndecodableEntry) return { kind: "undecodable", cause };
    throw cause;
  }
}

/** Returns the windows that the removed checkpoint named. */
async function remove(
  room: RoomKey,
  { from, windows }: RemovalEffect,
  { boards, checkpoints, closings, tenants, archive, activityRemoval }: BoardRoomPorts,
  partition: number,
): Promise<readonly Window[]> {
  switch (from) {
    case "checkpoint":
      return checkpoints.remove(room);
    case "boards":
      await boards.remove(room, windows);
      return [];
    case "tenants":
      await tenants.remove(room, windows);
      return [];
    case "closings":
      await closings.remove(partition, room, windows);
      return [];
    case "archive":
      await archive.remove(room);
      return [];
    case "activities":
      await activityRemoval.removeAll(room);
      return [];
    default:
      return assertNever(from);
  }
}
