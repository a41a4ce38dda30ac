/**
 * Room servers that stopped sending heartbeats without handing over their rooms. The last heartbeat of an orderly stop
 * reports no rooms.
 */

import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Millis, ServerId, UnixMillis } from "../../shared/ids.ts";

/** `rooms`: number of rooms in the last heartbeat. `at`: time at which the heartbeats were missed. */
export type LostRoomServer = { readonly server: ServerId; readonly rooms: number; readonly at: UnixMillis };

export class LostRoomServers {
  readonly #options: { readonly keptMs: number; readonly serversMax: number };
  readonly #heartbeats = new Map<ServerId, Pick<ServerHeartbeat, "rooms" | "draining">>();
  readonly #lost = new Map<ServerId, LostRoomServer & { readonly since: Millis }>();

  constructor(options: { keptMs: number; serversMax: number }) {
    this.#options = options;
  }

  receiveHeartbeat({ server, rooms, draining }: ServerHeartbeat): void {
    this.#heartbeats.set(server, { rooms, draining });
    this.#lost.delete(server);
  }

  receiveSilence(server: ServerId, now: Millis, at: UnixMillis): void {
    const heartbeat = this.#heartbeats.get(server);
    this.#heartbeats.delete(server);
    if (heartbeat === undefined || (heartbeat.draining && heartbeat.rooms === 0)) return;
    this.#lost.set(server, { server, rooms: heartbeat.rooms, at, since: now });
    const oldest = this.#lost.size > this.#options.serversMax ? this.#lost.keys().next().value : undefined;
    if (oldest !== undefined) this.#lost.delete(oldest);
  }

  /** The newest first. */
  lately(now: Millis): readonly LostRoomServer[] {
    for (const [server, { since }] of this.#lost) if (now - since > this.#options.keptMs) this.#lost.delete(server);
    return [...this.#lost.values()].map(({ server, rooms, at }) => ({ server, rooms, at })).reverse();
  }
}
