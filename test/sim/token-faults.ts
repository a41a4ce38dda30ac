/** Faults of tokens: rights that end for a time, and an unreachable token service. */

import { never } from "./process-faults.ts";
import type { Strike } from "./strike.ts";

/** A user becomes a viewer, or loses the room, for a time. In half of the cases the connection breaks, which shows it at once. */
export const changeRights: Strike = (cluster, { whom, how, forMs, aimed }) => {
  const { tokens } = cluster.world;
  const tab = cluster.tab(whom);
  if (tokens === undefined) return never;
  const before = tokens.spoiltEver;
  tokens.setLevel(tab.user, how < 0.6 ? "read" : "none");
  if (aimed === true) tab.connection?.break();
  cluster.later(forMs, () => tokens.setLevel(tab.user, "write"));
  return () => tokens.spoiltEver > before;
};

export const takeTokensAway: Strike = (cluster, { forMs }) => {
  const { tokens } = cluster.world;
  if (tokens === undefined) return never;
  const before = tokens.spoiltEver;
  tokens.isAway = true;
  cluster.later(forMs, () => (tokens.isAway = false));
  return () => tokens.spoiltEver > before;
};
