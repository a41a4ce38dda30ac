/** Carries out what the archiving of a partition wants, one port call for each request, and returns the outcome. */

import { assertNever } from "../../shared/assert.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import type { RankEntry } from "../boards/board.ts";
import type {
  Archive,
  ArchivedBoard,
  BoardReads,
  BoardStore,
  BoardCheckpoints,
  ClosedTenants,
  Closings,
  Progress,
  TenantArchive,
  TenantBoards,
} from "../ports.ts";
import { firstByRank } from "./archive-plan.ts";
import type { ArchivingOutcome, ArchivingRequest } from "./archiving-messages.ts";

export type ArchivingPorts = {
  readonly boards: Pick<BoardStore, "load">;
  readonly reads: BoardReads;
  readonly checkpoints: Pick<BoardCheckpoints, "mark">;
  readonly closings: Closings;
  readonly archive: Archive;
  readonly tenants: Pick<TenantBoards, "page">;
  readonly closedTenants: ClosedTenants;
  readonly tenantArchive: TenantArchive;
  readonly progress: Pick<Progress, "read">;
};

export async function carryOutArchiving(partition: number, request: ArchivingRequest, ports: ArchivingPorts): Promise<ArchivingOutcome> {
  const { archive, boards, closings, closedTenants, tenantArchive, tenants } = ports;
  switch (request.kind) {
    case "find-closings":
      return { kind: "closings-found", closings: await closings.due(partition, request.endedBefore, request.countMax) };
    case "check-closing":
      return checkClosing(request, ports);
    case "read-window":
      return readWindow(request, ports.reads);
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
      return { kind: "progress-read", words: await Promise.all(partitions.map((index) => ports.progress.read(index))) };
    }
    case "find-closed-tenants":
      return { kind: "closed-tenants-found", closed: await closedTenants.due(request.endedBefore, request.countMax) };
    case "read-tenant": {
      const { tenant, window } = request.closed;
      return { kind: "tenant-read", page: await tenants.page(tenant, window, { offset: 0, limit: request.countMax }) };
    }
    case "write-tenant":
      return { kind: "tenant-written", outcome: await tenantArchive.write(request.closed.tenant, request.closed.window, request.page) };
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

/** A board is scanned part by part, and no more than the first members are held. */
async function readWindow(
  { closing, roles, countMax }: ArchivingRequest & { kind: "read-window" },
  reads: BoardReads,
): Promise<ArchivingOutcome> {
  const { room, window } = closing;
  const boards: ArchivedBoard[] = [];
  for (const role of roles) {
    const { members, points } = await reads.read(room, role, window);
    let first: RankEntry[] = [];
    for await (const some of reads.all(room, role, window)) first = firstByRank([...first, ...some], countMax);
    boards.push({ role, members, points, standings: first });
  }
  return { kind: "window-read", closing, boards };
}
