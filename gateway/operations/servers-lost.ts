/**
 * Room servers that fell silent lately and had not let their rooms go: what has ended is in no heartbeat any more. A
 * server that stops in good order says last that it has no room left.
 */

import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Millis, ServerId, UnixMillis } from "../../shared/ids.ts";

/** `rooms`: that it had when it was heard last. `at`: when it was missed. */
export type LostServer = { readonly server: ServerId; readonly rooms: number; readonly at: UnixMillis };

export class ServersLost {
  readonly #options: { readonly keptMs: number; readonly serversMax: number };
  readonly #heard = new Map<ServerId, Pick<ServerHeartbeat, "rooms" | "draining">>();
  readonly #lost = new Map<ServerId, LostServer & { readonly since: Millis }>();

  constructor(options: { keptMs: number; serversMax: number }) {
    this.#options = options;
  }

  receiveHeartbeat({ server, rooms, draining }: ServerHeartbeat): void {
    this.#heard.set(server, { rooms, draining });
    this.#lost.delete(server);
  }

  receiveSilence(server: ServerId, now: Millis, at: UnixMillis): void {
    const said = this.#heard.get(server);
    this.#heard.delete(server);
    if (said === undefined || (said.draining && said.rooms === 0)) return;
    this.#lost.set(server, { server, rooms: said.rooms, at, since: now });
    const oldest = this.#lost.size > this.#options.serversMax ? this.#lost.keys().next().value : undefined;
    if (oldest !== undefined) this.#lost.delete(oldest);
  }

  /** The newest first. */
  lately(now: Millis): readonly LostServer[] {
    for (const [server, { since }] of this.#lost) if (now - since > this.#options.keptMs) this.#lost.delete(server);
    return [...this.#lost.values()].map(({ server, rooms, at }) => ({ server, rooms, at })).reverse();
  }
}
