/**
 * Large texts that people paste, so large that the client sends the edit in parts (WIRE54). The tab's connection breaks
 * between the parts of most of them. The log must have each pasted text complete.
 */

import type { Prng } from "../../shared/collections/prng.ts";
import { always, never } from "./process-faults.ts";
import type { Strike } from "./strike.ts";

/** Groups of four bytes. A text needs two or three parts. */
const GROUPS_MIN = 2_100;
const GROUPS_MORE = 3_900;
const BREAK_CHANCE = 0.7;
/** Parts arrive within this time, unless the network is slow. */
const BETWEEN_PARTS_MS = 20;

/** Length of a pasted text. */
export function pastedGroups(prng: Prng): number {
  return GROUPS_MIN + prng.below(GROUPS_MORE);
}

export const pasteText: Strike = (cluster, { whom, how }) => {
  const tab = cluster.tab(whom);
  const { connection } = tab;
  const chance = cluster.world.chance(`paste ${how}`);
  tab.paste(pastedGroups(chance));
  if (chance.chance(BREAK_CHANCE)) cluster.world.scheduler.after(chance.unit() * BETWEEN_PARTS_MS, () => connection?.break());
  return connection === undefined ? never : always;
};
