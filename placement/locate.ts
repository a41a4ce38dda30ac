/**
 * Answers "who should own this room?". Whoever owns it by the rooms bucket keeps it while alive; else whoever has a
 * warm copy of it; else rendezvous hashing over the live servers. Only a hint: the claim's epoch record in the log
 * decides.
 */

import type { LocateReply, LocateRequest, RoomEntry } from "../shared/bus/placement-messages.ts";
import type { ServerId } from "../shared/ids.ts";
import { rendezvous } from "../shared/rendezvous.ts";

export type Servers = {
  /** Those that take new rooms. */
  readonly available: readonly ServerId[];
  readonly isLive: (server: ServerId) => boolean;
};

/**
 * `replica`: who keeps a warm copy, if anybody. `suspects`: servers that the asker got no answer from; passed over,
 * though their heartbeats may look well.
 */
export function decideOwner(
  request: LocateRequest,
  entry: RoomEntry | undefined,
  replica: ServerId | undefined,
  servers: Servers,
): LocateReply {
  if (entry !== undefined && servers.isLive(entry.owner) && !request.suspects.includes(entry.owner)) {
    return { kind: "server", server: entry.owner };
  }
  if (replica !== undefined && servers.available.includes(replica) && !request.suspects.includes(replica)) {
    return { kind: "server", server: replica };
  }
  const [best] = rendezvous(
    request.room,
    servers.available.filter((server) => !request.suspects.includes(server)),
  );
  return best === undefined
    ? { kind: "none", reason: "no room server is alive that was not tried: start one, or look at why those there do not answer" }
    : { kind: "server", server: best };
}
