/** Backends that begin to write over HTTP with keys, and clients that begin to use a room's history. */

import { never } from "./process-faults.ts";
import type { Strike } from "./strike.ts";

/** A backend writes with a key of its own. */
export const writeWithKey: Strike = (cluster, { whom }) => {
  const write = cluster.world.keyedWrites.begin(cluster, cluster.tab(whom).room);
  return write === undefined ? never : () => write.isRepeated;
};

export function useHistory(purpose: "read" | "restore"): Strike {
  return (cluster, { whom }) => {
    const client = cluster.world.historyClients.begin(cluster, cluster.tab(whom).room, purpose);
    return client === undefined ? never : () => client.answers > 0;
  };
}
