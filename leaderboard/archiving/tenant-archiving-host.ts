/**
 * Puts a closed window of tenants' rooms into the archive, once. A tenant's rooms lie in all parts of the log: a window
 * is closed when each part has counted past its end and has told its rooms' totals since.
 */

import type { UnixMillis } from "../../shared/ids.ts";
import type { ClosedTenants, Progress, TenantArchive, TenantBoards } from "../ports.ts";
import { keptUntil } from "./kept-until.ts";

export type TenantArchivingPorts = {
  readonly tenants: Pick<TenantBoards, "page">;
  readonly closedTenants: ClosedTenants;
  readonly tenantArchive: TenantArchive;
  readonly progress: Pick<Progress, "read">;
};
export type TenantArchivingOptions = {
  readonly logPartitions: number;
  readonly boardArchivedMax: number;
  readonly boardArchiveGraceMs: number;
};

const AT_A_TIME = 100;

/** `confirm` throws unless Redis still has all it had. Returns what became of each window. */
export async function archiveTenants(
  { tenants, closedTenants, tenantArchive, progress }: TenantArchivingPorts,
  options: TenantArchivingOptions,
  { wallNow, confirm }: { wallNow: UnixMillis; confirm: () => Promise<void> },
): Promise<("written" | "there")[]> {
  const words = await Promise.all(Array.from({ length: options.logPartitions }, (_, partition) => progress.read(partition)));
  const toldBy = Math.min(...words.map((word) => (word === undefined || word.isRebuilding ? 0 : word.told)));
  const due = await closedTenants.due((toldBy - options.boardArchiveGraceMs) as UnixMillis, AT_A_TIME);
  const outcomes: ("written" | "there")[] = [];
  for (const { tenant, window } of due) {
    const { rooms, people, ranking } = await tenants.page(tenant, window, { offset: 0, limit: options.boardArchivedMax });
    await confirm();
    const outcome = rooms === 0 ? "there" : await tenantArchive.write(tenant, window, { rooms, people, ranking });
    await closedTenants.finish({ tenant, window }, keptUntil(outcome, window, wallNow));
    outcomes.push(outcome);
  }
  return outcomes;
}
