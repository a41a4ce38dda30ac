/**
 * Looks, again and again, for windows of a partition's rooms that have closed, and archives them. Of all partitions
 * one does it for the tenants.
 */

import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { pause } from "../../shared/pause.ts";
import { Undecodable } from "../../shared/undecodable.ts";
import { eachOf } from "../counting/turns.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { Closing } from "../ports.ts";
import { archiveWindow, type ArchivingOptions, type ArchivingPorts } from "./archiving-host.ts";
import { archiveTenants, type TenantArchivingOptions, type TenantArchivingPorts } from "./tenant-archiving-host.ts";

export type ClosedPorts = ArchivingPorts & TenantArchivingPorts;
export type ClosedOptions = ArchivingOptions & TenantArchivingOptions & { readonly boardCheckpointWritesMax: number };
export type ClosedDeps = {
  readonly clock: Clock;
  readonly metrics: Pick<LeaderboardMetrics, "archived">;
  /** All that the streams took before it is counted. Undefined: not known yet, and nothing is archived. */
  readonly through: () => UnixMillis | undefined;
  /** Throws unless Redis still has all it had and is still ours to read. */
  readonly confirm: () => Promise<void>;
  /** The room's checkpoint has more than Redis: its windows are due again once they are put back. */
  readonly restore: (room: RoomKey) => Promise<void>;
  readonly onArchived: (closing: Closing) => void;
  /** The room's checkpoint cannot be understood: its windows stay where they are. */
  readonly isAside: (room: RoomKey) => boolean;
  readonly setAside: (room: RoomKey, cause: Undecodable) => void;
};

const LOOK_MS = 1_000;
const AT_A_TIME = 100;
/** The one that looks after the tenants. */
const TENANTS_PARTITION = 0;

export async function archiveClosed(
  partition: number,
  ports: ClosedPorts,
  options: ClosedOptions,
  deps: ClosedDeps,
  signal: AbortSignal,
): Promise<void> {
  const { clock, metrics, confirm } = deps;
  let atATime = AT_A_TIME;
  while (!signal.aborted) {
    await pause(clock, LOOK_MS, signal);
    const through = deps.through();
    if (signal.aborted || through === undefined) continue;
    const closed = await ports.closings.due(partition, (through - options.boardArchiveGraceMs) as UnixMillis, atATime);
    const due = closed.filter(({ room }) => !deps.isAside(room));
    atATime = AT_A_TIME + 2 * (closed.length - due.length); // The others stay at the head, and the next look is to see past them.
    await eachOf(due, options.boardCheckpointWritesMax, async (closing) => {
      if (signal.aborted || deps.isAside(closing.room)) return; // By another window of its.
      const outcome = await archiveWindow(closing, partition, ports, options, { wallNow: clock.wallNow(), confirm }).catch(
        (cause: unknown) => {
          if (cause instanceof Undecodable) return cause;
          throw cause;
        },
      );
      if (outcome instanceof Undecodable) return deps.setAside(closing.room, outcome);
      metrics.archived.inc({ outcome });
      if (outcome === "behind") return deps.restore(closing.room);
      deps.onArchived(closing);
    });
    if (partition !== TENANTS_PARTITION || signal.aborted) continue;
    const outcomes = await archiveTenants(ports, options, { wallNow: clock.wallNow(), confirm });
    for (const outcome of outcomes) metrics.archived.inc({ outcome });
  }
}
