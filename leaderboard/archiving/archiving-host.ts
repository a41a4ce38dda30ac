/** Puts a closed window's boards into the archive, once, and lets Redis forget them after a while. */

import type { UnixMillis } from "../../shared/ids.ts";
import { byRank, isAhead, NOTHING_APPLIED, type Standing } from "../boards/board.ts";
import type { Role } from "../boards/keys.ts";
import type { Archive, ArchivedBoard, BoardReads, Boards, Checkpoints, Closing, Closings } from "../ports.ts";
import { keptUntil } from "./kept-until.ts";

export type ArchivingPorts = {
  readonly boards: Pick<Boards, "load">;
  readonly reads: BoardReads;
  readonly checkpoints: Pick<Checkpoints, "mark">;
  readonly closings: Closings;
  readonly archive: Archive;
};
export type ArchivingOptions = { readonly boardRoles: readonly Role[]; readonly boardArchivedMax: number };

/**
 * `confirm` throws unless Redis still has all it had and is still ours to read: a window that was cut short by
 * a loss, or is half put back by a successor, must not become its archive. `behind`: the room's checkpoint has more
 * than Redis, and nothing was done.
 */
export async function archiveWindow(
  { room, window }: Closing,
  partition: number,
  { boards, reads, checkpoints, closings, archive }: ArchivingPorts,
  options: ArchivingOptions,
  { wallNow, confirm }: { wallNow: UnixMillis; confirm: () => Promise<void> },
): Promise<"written" | "there" | "behind"> {
  const mark = await checkpoints.mark(room); // Looked at first: meanwhile the boards only get farther.
  const stored = await boards.load(room);
  if (stored !== "deleted" && isAhead(mark, stored?.applied ?? NOTHING_APPLIED)) return "behind";
  const finished = async (outcome: "written" | "there"): Promise<"written" | "there"> => {
    await closings.finish(partition, { room, window }, keptUntil(outcome, window, wallNow));
    return outcome;
  };
  if (stored === "deleted" || stored === undefined) return finished("there");
  const archived: ArchivedBoard[] = [];
  for (const role of options.boardRoles) {
    const { members, points } = await reads.read(room, role, window);
    let first: Standing[] = [];
    for await (const some of reads.all(room, role, window)) first = firstOf([...first, ...some], options.boardArchivedMax);
    if (members > 0) archived.push({ role, members, points, standings: first });
  }
  await confirm();
  if (archived.length === 0) return finished("there");
  const outcome = await archive.write(room, window, { applied: stored.applied, boards: archived });
  if ((await boards.load(room)) === "deleted") await archive.remove(room); // Meanwhile: nobody else looks here again.
  return finished(outcome);
}

/** A scan may show a member twice. */
function firstOf(standings: readonly Standing[], countMax: number): Standing[] {
  const byMember = new Map(standings.map((standing) => [standing.member, standing]));
  return [...byMember.values()].sort(byRank).slice(0, countMax);
}
