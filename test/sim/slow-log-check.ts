/**
 * The last part of some runs: while nothing else fails, the log does not confirm appends for a time. All tabs of a room
 * with an unconfirmed edit must receive that saving is delayed, and all but the author's must show the edit as
 * tentative. Afterwards no tab may show a delay. A room whose claim begins before the log stops, and ends after it, has no
 * owner meanwhile that could announce the delay, so it is not checked.
 */

import type { Cluster } from "./cluster.ts";
import type { Tab } from "./tab.ts";

const CHANCE = 0.3;
/** Much longer than `savingAfterMs`, a tick of the room, and the messages to all tabs. */
const NOTICE_MS_MAX = 1_500;
/** Above the duration of a claim by a room server whose NATS connection works. */
const CLAIM_MS_MAX = 20_000;

/** `settle`: waits until all tabs are settled. */
export async function checkSlowLog(cluster: Cluster, settle: () => Promise<void>): Promise<void> {
  const { world } = cluster;
  const { log, judge, scheduler, trace } = world;
  const prng = world.chance("slow log at the end");
  if (judge.failure !== undefined || !prng.chance(CHANCE)) return;
  await scheduler.runUntil(scheduler.now + CLAIM_MS_MAX, () => judge.failure !== undefined || !isClaiming(cluster));
  trace.note("--- the log does not confirm appends");
  if (prng.chance(0.5)) log.mood = "silent";
  else log.slowMs = 2 * NOTICE_MS_MAX;
  const authors = authorOfEachRoom(cluster);
  const epochOf = ({ room }: Tab): number => judge.room(room).epoch;
  const epochs = authors.map(epochOf);
  for (const author of authors) author.type();
  const unaware = (): string | undefined =>
    authors
      .filter((author, index) => epochOf(author) === epochs[index])
      .map((author) => unawareOf(cluster, author))
      .find((what) => what !== undefined);
  await scheduler.runUntil(scheduler.now + NOTICE_MS_MAX, () => judge.failure !== undefined || unaware() === undefined);
  const missing = unaware();
  if (missing !== undefined) judge.fail(`the log is slow, and ${missing}`);
  log.mood = "well";
  log.slowMs = 0;
  await settle();
}

function isClaiming({ roomServers }: Cluster): boolean {
  return roomServers.some(({ process, host }) => process.state === "running" && host.rooms > host.owned().length);
}

function authorOfEachRoom({ tabs }: Cluster): Tab[] {
  const open = tabs.filter(({ isToldDeleted, isBanned }) => !isToldDeleted && !isBanned);
  return [...new Map(open.map((tab) => [tab.room, tab])).values()];
}

/** Describes a tab that does not show the author's last keystroke as unconfirmed. */
function unawareOf({ tabs }: Cluster, author: Tab): string | undefined {
  for (const tab of tabs) {
    if (tab.room !== author.room || tab.isBanned || tab.isToldDeleted) continue;
    if (tab.saving === "saved") return `${tab.name} shows no delay`;
    if (tab !== author && !tab.showsTentative(author.author, author.typed - 1))
      return `${tab.name} does not show the edit of ${author.name} as tentative`;
  }
  return undefined;
}
