/** Carries out the requests of counted rooms and of archiving, with one port call for each request. Returns the outcome. */

import { assertNever } from "../../shared/assert.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { firstByRank } from "../archiving/archive-plan.ts";
import type { ArchiveWrite, ArchivingOutcome, ArchivingRequest } from "../archiving/archiving-messages.ts";
import type { RemovalEffect } from "../archiving/removal.ts";
import { NOTHING_APPLIED, type RankEntry } from "../boards/board.ts";
import { type BoardOwner, type MemberRole, TENANT_RANKINGS, tenantBoard } from "../boards/keys.ts";
import type { Window } from "../boards/windows.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type {
  ActivityRemoval,
  Archive,
  ArchivedBoard,
  BoardCheckpoints,
  BoardReads,
  BoardStore,
  ClosedTenants,
  Closings,
  Progress,
  TenantBoards,
} from "../ports.ts";
import type { BoardRoomOutcome, BoardRoomRequest } from "./board-room-messages.ts";

export type BoardRoomPorts = {
  readonly boards: BoardStore;
  readonly closings: Closings;
  readonly checkpoints: BoardCheckpoints;
  readonly tenants: TenantBoards;
  readonly archive: Pick<Archive, "remove">;
  readonly activityRemoval: ActivityRemoval;
};
type BoardRoomDeps = {
  readonly partition: number;
  readonly clock: Clock;
  readonly metrics: Pick<LeaderboardMetrics, "batches" | "checkpoints" | "restores">;
  readonly onRestored: () => void;
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
    case "restore":
      if ((await boards.restore(room, request.dump)).kind === "written") {
        deps.metrics.restores.inc();
        deps.onRestored();
      }
      return { kind: "restored" };
    case "apply-batch": {
      const endTimer = deps.metrics.batches.startTimer();
      const write = await boards.apply(room, request.batch);
      endTimer();
      return { kind: "batch-applied", write };
    }
    case "send-totals":
      await tenants.sendTotals(room, request.changes);
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

export type ArchivingPorts = {
  readonly boards: Pick<BoardStore, "load">;
  readonly reads: BoardReads;
  readonly checkpoints: Pick<BoardCheckpoints, "mark">;
  readonly closings: Closings;
  readonly archive: Archive;
  readonly closedTenants: ClosedTenants;
  readonly progress: Pick<Progress, "read">;
};

export async function carryOutArchiving(partition: number, request: ArchivingRequest, ports: ArchivingPorts): Promise<ArchivingOutcome> {
  const { archive, boards, closings, closedTenants, reads } = ports;
  switch (request.kind) {
    case "find-closings":
      return { kind: "closings-found", closings: await closings.due(partition, request.endedBefore, request.countMax) };
    case "check-closing":
      return checkClosing(request, ports);
    case "read-window": {
      const { closing, roles, countMax } = request;
      return { kind: "window-read", closing, boards: await readBoards(closing.room, closing.window, { roles, countMax }, reads) };
    }
    case "write-archive": {
      const { closing, archived } = request;
      return { kind: "archive-written", closing, outcome: await archive.write(closing.room, closing.window, archived) };
    }
    case "check-deleted":
      return { kind: "deleted-checked", closing: request.closing, isDeleted: (await boards.load(request.closing.room)) === "deleted" };
    case "remove-archive":
      await archive.remove(request.closing.room);
      return { kind: "archive-removed", closing: request.closing };
    case "finish-closing":
      await closings.finish(partition, request.closing, request.keepUntil);
      return { kind: "closing-finished", closing: request.closing };
    case "read-progress": {
      const partitions = Array.from({ length: request.partitions }, (_, index) => index);
      return { kind: "progress-read", reports: await Promise.all(partitions.map((index) => ports.progress.read(index))) };
    }
    case "find-closed-tenants":
      return { kind: "closed-tenants-found", closed: await closedTenants.due(request.endedBefore, request.countMax) };
    case "read-tenant": {
      const { tenant, window } = request.closed;
      const people = await readBoards(tenantBoard(tenant, "people"), window, request, reads);
      return { kind: "tenant-read", boards: { people, rooms: await readBoards(tenantBoard(tenant, "rooms"), window, request, reads) } };
    }
    case "write-tenant":
      return { kind: "tenant-written", outcome: await writeTenant(request, archive) };
    case "finish-tenant":
      await closedTenants.finish(request.closed, request.keepUntil);
      return { kind: "tenant-finished" };
    default:
      return assertNever(request);
  }
}

async function checkClosing(
  { closing }: { readonly closing: (ArchivingRequest & { kind: "check-closing" })["closing"] },
  { checkpoints, boards }: ArchivingPorts,
): Promise<ArchivingOutcome> {
  try {
    const mark = await checkpoints.mark(closing.room);
    return { kind: "closing-checked", closing, mark, stored: await boards.load(closing.room) };
  } catch (cause) {
    if (cause instanceof UndecodableEntry) return { kind: "closing-undecodable", closing, cause };
    throw cause;
  }
}

/** Scans a board part by part and keeps only the highest members in memory. */
async function readBoards(
  owner: BoardOwner,
  window: Window,
  { roles, countMax }: { readonly roles: readonly MemberRole[]; readonly countMax: number },
  reads: BoardReads,
): Promise<ArchivedBoard[]> {
  const boards: ArchivedBoard[] = [];
  for (const role of roles) {
    const { members, points } = await reads.read(owner, role, window);
    let first: RankEntry[] = [];
    for await (const some of reads.all(owner, role, window)) first = firstByRank([...first, ...some], countMax);
    boards.push({ role, members, points, standings: first });
  }
  return boards;
}

/** A crash may follow the first write. The next attempt repeats both. */
async function writeTenant({ closed, boards }: ArchivingRequest & { kind: "write-tenant" }, archive: Archive): Promise<ArchiveWrite> {
  const applied = { ...NOTHING_APPLIED, time: closed.window.end as UnixMillis };
  const outcomes: ArchiveWrite[] = [];
  for (const ranking of TENANT_RANKINGS) {
    outcomes.push(await archive.write(tenantBoard(closed.tenant, ranking), closed.window, { applied, boards: boards[ranking] }));
  }
  return outcomes.includes("written") ? "written" : "there";
}
