/**
 * Removes the boards of a room that is deleted, wherever they are. The checkpoint and Redis say so first, so that whoever
 * is late to count or to save finds that; any step may be the last, and all are done again until none fails.
 */

import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { ActivityRemoval, Archive, Boards, Checkpoints, Closings, TenantBoards } from "../ports.ts";
import { ALL_TIME, KEPT_MS, type Window, WINDOW_KINDS, windowAt } from "../boards/windows.ts";

export type RemovalPorts = {
  readonly boards: Pick<Boards, "remove">;
  readonly checkpoints: Pick<Checkpoints, "remove">;
  readonly tenants: Pick<TenantBoards, "remove">;
  readonly closings: Pick<Closings, "remove">;
  readonly archive: Pick<Archive, "remove">;
  readonly activityRemoval: ActivityRemoval;
};

/** A window that was archived late stays so much longer in Redis. */
const LATE_MS_MAX = 24 * 3_600_000;

export async function removeBoards(room: RoomKey, partition: number, ports: RemovalPorts, now: UnixMillis): Promise<void> {
  const counted = await ports.checkpoints.remove(room);
  const windows = [...new Map([...counted, ...windowsInRedis(now)].map((window) => [window.id, window])).values()];
  await ports.boards.remove(room, windows);
  await ports.tenants.remove(room, windows);
  await ports.closings.remove(partition, room, windows);
  await ports.archive.remove(room);
  await ports.activityRemoval.removeAll(room);
}

/** Those that any room may have boards of at this date, and the next ones: the log's clock may be ahead. */
export function windowsInRedis(now: UnixMillis): Window[] {
  const windows: Window[] = [ALL_TIME];
  for (const kind of WINDOW_KINDS) {
    if (kind === "all") continue;
    const last = windowAt(kind, windowAt(kind, now).end as UnixMillis);
    for (
      let window = windowAt(kind, (now - KEPT_MS[kind] - LATE_MS_MAX) as UnixMillis);
      window.start <= last.start;
      window = windowAt(kind, window.end as UnixMillis)
    ) {
      windows.push(window);
    }
  }
  return windows;
}
