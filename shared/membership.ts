/**
 * Which room servers are alive, from their heartbeats: everyone who needs to know listens for itself.
 * A guess like any of its kind: a paused server looks dead. The log's fencing makes a wrong guess safe.
 */

import type { Millis, ServerId } from "./ids.ts";
import type { ServerHeartbeat } from "./bus/placement-messages.ts";

export class Membership {
  readonly #silenceMsMax: number;
  readonly #heard = new Map<ServerId, { at: Millis; heartbeat: ServerHeartbeat }>();

  /** A server not heard for `silenceMsMax` is taken for dead: three heartbeats, by default 750 ms. */
  constructor(options: { silenceMsMax: number }) {
    this.#silenceMsMax = options.silenceMsMax;
  }

  receiveHeartbeat(heartbeat: ServerHeartbeat, now: Millis): void {
    this.#heard.set(heartbeat.server, { at: now, heartbeat });
  }

  isLive(server: ServerId, now: Millis): boolean {
    const heard = this.#heard.get(server);
    return heard !== undefined && now - heard.at <= this.#silenceMsMax;
  }

  /** The live ones that take new rooms, sorted by name. Forgets the dead. */
  available(now: Millis): ServerId[] {
    for (const [server, { at }] of this.#heard) if (now - at > this.#silenceMsMax) this.#heard.delete(server);
    return [...this.#heard.values()].filter(({ heartbeat }) => !heartbeat.draining).map(({ heartbeat }) => heartbeat.server).sort();
  }
}
