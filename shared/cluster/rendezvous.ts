/**
 * Chooses the server that should own a room by default, by rendezvous hashing (highest random weight, Thaler and
 * Ravishankar 1998). Processes that know the same servers get the same answer. When a server is lost, only its rooms
 * move, spread evenly over the others.
 */

import { hash32 } from "../collections/hash.ts";
import type { RoomKey, ServerId } from "../ids.ts";

/** All servers, best first. */
export function rankServers(room: RoomKey, servers: readonly ServerId[]): ServerId[] {
  const weighed = servers.map((server) => ({ server, weight: hash32(`${server} ${room}`) }));
  weighed.sort((a, b) => b.weight - a.weight || (a.server < b.server ? -1 : 1));
  return weighed.map(({ server }) => server);
}
