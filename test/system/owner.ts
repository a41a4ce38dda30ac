/** Finds the owner of a room from the log: the writer of its last record. */

import type { RoomKey, ServerId } from "../../shared/ids.ts";
import type { SystemCluster, Process } from "./cluster.ts";
import { readLog } from "./log-checks.ts";

export async function ownerOf(cluster: SystemCluster, room: RoomKey): Promise<Process> {
  const last = (await readLog(cluster.natsUrl, cluster.environment, room)).at(-1);
  const server = last?.id.slice(0, last.id.lastIndexOf("."));
  const owner = server === undefined ? undefined : processOf(cluster, server as ServerId);
  if (owner === undefined) throw new Error(`no room server wrote the last record of ${room} (${server ?? "it has none"})`);
  return owner;
}

/** The process that runs, or ran, a room server with this name. */
export function processOf(cluster: SystemCluster, server: ServerId): Process | undefined {
  return cluster.roomServers.find((process) => process.serversReady().some((line) => line.includes(server)));
}

/** The name of the room server in a process, or of its last run. */
export function serverOf(process: Process): ServerId | undefined {
  const ready = process.serversReady().at(-1);
  return ready === undefined ? undefined : (JSON.parse(ready) as { server: ServerId }).server;
}
