/**
 * Tracks which room servers are alive, and publishes this server's own heartbeat at a steady interval. A server is lost
 * after missed heartbeats. It is also lost if another process cannot reach it and NATS confirms that it has no
 * subscription: a process that ends closes its connection long before its heartbeats are missed.
 */

import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { Millis, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { FIRST_HEARTBEATS_MS, type Membership } from "../../shared/cluster/membership.ts";
import type { Peers } from "../ports.ts";

/**
 * Number of heartbeat intervals for which a server receives heartbeats before it claims rooms. After them it knows
 * every live server with the same interval.
 */
export const LISTEN_HEARTBEATS = 1.5;

/**
 * Whether a room's owner counts as alive. The heartbeat of a server with a longer interval may not have arrived yet,
 * and its rooms must not be claimed while it is alive.
 */
export function isBelievedAlive(membership: Membership, listeningSince: Millis, server: ServerId, now: Millis): boolean {
  return now < listeningSince + FIRST_HEARTBEATS_MS || membership.isLive(server, now);
}

type PeersDeps = { readonly clock: Clock; readonly log: Log; readonly receiveLost: (server: ServerId) => void };

/** `own`: this server also receives its own heartbeats. If they are missing, its connection is broken. */
export function listenToPeers(own: ServerId, membership: Membership, peers: Peers, { clock, log, receiveLost }: PeersDeps): () => void {
  const loseAll = (servers: readonly ServerId[], how: string): void => {
    if (servers.includes(own)) log.warn({}, "this room server receives no heartbeats, not even its own: it does not reach NATS");
    if (!membership.isFresh(own, clock.now())) return;
    for (const server of servers) {
      log.info({ server, how }, "another room server is lost");
      receiveLost(server);
    }
  };
  const receiveGone = (server: ServerId): void => {
    if (!membership.isLive(server, clock.now())) return; // The loss was already noticed, or the question was sent twice.
    membership.forget(server);
    loseAll([server], "nothing listens there");
  };
  peers.onHeartbeat((heartbeat) => {
    membership.receiveHeartbeat(heartbeat, clock.now());
    if (heartbeat.ends === true) receiveLost(heartbeat.server); // Its rooms that it did not release.
  });
  peers.onUnreached((server) => void peers.isGone(server).then((isGone) => isGone && receiveGone(server)));
  let cancel = (): void => {};
  const check = (): void => {
    const now = clock.now();
    loseAll(membership.takeLost(now), "its heartbeats are missed");
    cancel = clock.after(membership.nextLookAt(now) - now, check);
  };
  check();
  return () => cancel();
}

/**
 * `beatNow`: sends a change that others should receive at once. `stop` sends a last heartbeat that announces the end, so
 * that nobody waits for this server or reports its loss.
 */
export function sendServerHeartbeats(
  describe: () => Omit<ServerHeartbeat, "time" | "everyMs" | "ends">,
  peers: Peers,
  clock: Clock,
  heartbeatMs: number,
): { beatNow(): void; stop(): void } {
  const current = (): ServerHeartbeat => ({ ...describe(), everyMs: heartbeatMs, time: clock.wallNow() });
  const publishAlive = (): void => peers.publishHeartbeat(current());
  publishAlive();
  const stopBeating = every(clock, heartbeatMs, publishAlive);
  const stop = (): void => {
    stopBeating();
    peers.publishHeartbeat({ ...current(), ends: true });
  };
  return { beatNow: publishAlive, stop };
}
