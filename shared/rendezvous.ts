/**
 * Which server should own a room when nobody says otherwise: rendezvous hashing (highest random weight,
 * Thaler and Ravishankar 1998). Everyone who knows the same servers gives the same answer, and a server
 * that goes takes only its own rooms with it, spread evenly over the rest.
 */

import type { RoomKey, ServerId } from "./ids.ts";

/** All servers, the best first. */
export function rendezvous(room: RoomKey, servers: readonly ServerId[]): ServerId[] {
  const weighed = servers.map((server) => ({ server, weight: weight(`${server} ${room}`) }));
  weighed.sort((a, b) => b.weight - a.weight || (a.server < b.server ? -1 : 1));
  return weighed.map(({ server }) => server);
}

/** FNV-1a, then the finalizer of MurmurHash3: FNV alone leaves names that differ only at the end close together. */
function weight(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
