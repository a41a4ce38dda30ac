/** Hears which other room servers live, forgets those that fell silent, and says at a steady pace that this one lives, and how it is. */

import type { ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import type { Membership } from "../shared/membership.ts";
import type { Peers } from "./ports.ts";

/** Heartbeats that may be missed before a server is taken for dead. */
export const BEATS_MISSED_MAX = 3;
/** How long a server listens before it takes rooms: until it has heard every live peer, else it would take theirs. */
export const LISTEN_BEATS = 1.5;

/** Much more often than anybody is taken for dead. */
const LOOK_MS = 50;

export function listenToPeers(membership: Membership, peers: Peers, { clock, log }: { clock: Clock; log: Log }): () => void {
  peers.onHeartbeat((heartbeat) => membership.receiveHeartbeat(heartbeat, clock.now()));
  let cancel = (): void => {};
  const look = (): void => {
    const lost = membership.takeLost(clock.now());
    if (lost.length > 0) log.info({ servers: lost }, "other room servers are no longer heard");
    cancel = clock.after(LOOK_MS, look);
  };
  look();
  return () => cancel();
}

export function beatHeart(describe: () => Omit<ServerHeartbeat, "time">, peers: Peers, clock: Clock, heartbeatMs: number): () => void {
  let cancel = (): void => {};
  const beat = (): void => {
    peers.sayAlive({ ...describe(), time: clock.wallNow() });
    cancel = clock.after(heartbeatMs, beat);
  };
  beat();
  return () => cancel();
}
