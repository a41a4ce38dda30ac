/**
 * Which server should own a room when nobody says otherwise: rendezvous hashing (highest random weight,
 * Thaler and Ravishankar 1998). Everyone who knows the same servers gives the same answer, and a server
 * that goes takes only its own rooms with it, spread evenly over the rest.
 */

import { hash32 } from "./hash.ts";
import type { RoomKey, ServerId } from "./ids.ts";

/** All servers, the best first. */
export function rendezvous(room: RoomKey, servers: readonly ServerId[]): ServerId[] {
  const weighed = servers.map((server) => ({ server, weight: hash32(`${server} ${room}`) }));
  weighed.sort((a, b) => b.weight - a.weight || (a.server < b.server ? -1 : 1));
  return weighed.map(({ server }) => server);
}
