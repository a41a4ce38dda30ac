/**
 * Hears which other room servers live, and says at a steady pace that this one lives, and how it is. One that falls
 * silent is lost. So is one that somebody does not reach, if NATS says here as well that nobody listens there: a process
 * that ends leaves its line at once, long before its heartbeats are missed.
 */

import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { HEARD_ALL_MS, type Membership } from "../../shared/membership.ts";
import type { Peers } from "../ports.ts";

/** How long a server listens before it takes rooms: until it has heard every live peer that beats as often as itself. */
export const LISTEN_BEATS = 1.5;

/** Whether a room's owner is to be believed alive: one that beats more seldom may not have been heard yet, and a room would be taken from it while it lives. */
export function isBelievedAlive(membership: Membership, listeningSince: Millis, server: ServerId, now: Millis): boolean {
  return now < listeningSince + HEARD_ALL_MS || membership.isLive(server, now);
}

export type PeersDeps = { readonly clock: Clock; readonly log: Log; readonly receiveLost: (server: ServerId) => void };

/** `own`: heard like all others, unless it is this server's line that is silent. */
export function listenToPeers(own: ServerId, membership: Membership, peers: Peers, { clock, log, receiveLost }: PeersDeps): () => void {
  const lose = (server: ServerId, how: string): void => {
    const hearsItself = membership.isFresh(own, clock.now());
    log.info({ server, how, hearsItself }, "another room server is gone, or this one is cut off");
    if (hearsItself) receiveLost(server);
  };
  const receiveGone = (server: ServerId): void => {
    if (!membership.isLive(server, clock.now())) return; // Noticed meanwhile, or asked about twice.
    membership.forget(server);
    lose(server, "nobody listens there");
  };
  peers.onHeartbeat((heartbeat) => membership.receiveHeartbeat(heartbeat, clock.now()));
  peers.onUnreached((server) => void peers.isGone(server).then((isGone) => isGone && receiveGone(server)));
  let cancel = (): void => {};
  const look = (): void => {
    const now = clock.now();
    for (const server of membership.takeLost(now)) lose(server, "it is no longer heard");
    cancel = clock.after(membership.nextLookAt(now) - now, look);
  };
  look();
  return () => cancel();
}

/** Returns what ends it, which says how it is once more: a server that has let go of its rooms is not lost. */
export function beatHeart(
  describe: () => Omit<ServerHeartbeat, "time" | "everyMs">,
  peers: Peers,
  clock: Clock,
  heartbeatMs: number,
): () => void {
  const sayAlive = (): void => peers.sayAlive({ ...describe(), everyMs: heartbeatMs, time: clock.wallNow() });
  let cancel = (): void => {};
  const beat = (): void => {
    sayAlive();
    cancel = clock.after(heartbeatMs, beat);
  };
  beat();
  return () => {
    cancel();
    sayAlive();
  };
}
