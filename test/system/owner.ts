/** Which process owns a room, by what the log says: the writer of its last record. */

import type { RoomKey } from "../../shared/ids.ts";
import type { Cluster, Process } from "./cluster.ts";
import { readLog } from "./log-checks.ts";

export async function ownerOf(cluster: Cluster, room: RoomKey): Promise<Process> {
  const last = (await readLog(cluster.nats.url, cluster.environment, room)).at(-1);
  const server = last?.id.slice(0, last.id.lastIndexOf("."));
  const owner = cluster.roomServers.find((process) => server !== undefined && process.printed().includes(server));
  if (owner === undefined) throw new Error(`no room server wrote the last record of ${room} (${server ?? "it has none"})`);
  return owner;
}
