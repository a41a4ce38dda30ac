/** Backends that begin to write over HTTP with keys. */

import { never } from "./process-faults.ts";
import type { Strike } from "./strike.ts";

/** A backend writes with a key of its own. */
export const writeWithKey: Strike = (cluster, { whom }) => {
  const write = cluster.world.keyedWrites.begin(cluster, cluster.tab(whom).room);
  return write === undefined ? never : () => write.isRepeated;
};
