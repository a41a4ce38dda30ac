/**
 * What one y-websocket client shows and is shown, between its awareness and the room's. Of what the client says only what
 * it says of itself counts: it repeats to its server whatever it hears, from that and from tabs beside it, which are here
 * by themselves. Rules YAW1 to YAW4.
 */

import type { Clock } from "../shared/clock.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import type { YState } from "./protocol.ts";

export type RoomAwareness = Pick<YjsProvider["awareness"], "clientID" | "states" | "setLocalState">;

/** The SDK keeps it to itself. */
const RESERVED = "yjs";

export class YAwareness {
  readonly #room: RoomAwareness;
  readonly #clock: Pick<Clock, "wallNow">;
  /** Who the client is. Undefined: it has not said yet. */
  #own: number | undefined;
  /** Every other client that this one was ever told of, for as long as that is so. */
  readonly #told = new Set<number>();
  #lastClock = 0;
  #shown = "null";

  /** Shows nothing until the client does. */
  constructor(room: RoomAwareness, own: number | undefined, clock: Pick<Clock, "wallNow">) {
    this.#room = room;
    this.#own = own;
    this.#clock = clock;
    room.setLocalState(null);
  }

  receive(states: readonly YState[]): void {
    this.#own ??= states.find(({ client, state }) => state !== null && !this.#told.has(client))?.client;
    for (const { client, state } of states) {
      if (client !== this.#own) continue;
      const shown = JSON.stringify(state);
      if (shown === this.#shown) continue; // It says so every 15 s, changed or not.
      this.#shown = shown;
      this.#room.setLocalState(ownFields(state));
    }
  }

  /** What the client is to be told of them. */
  tell(clients: readonly number[]): YState[] {
    const others = clients.filter((client) => client !== this.#room.clientID && client !== this.#own);
    const clock = this.#nextClock();
    if (this.#own === undefined) for (const client of others) this.#told.add(client);
    return others.map((client) => ({ client, clock, state: this.#room.states.get(client) ?? null }));
  }

  /** Everybody: a client forgets whom it was not told of for 30 s. */
  tellAll(): YState[] {
    return this.tell([...this.#room.states.keys()]);
  }

  /** Above what any bridge before this one told the client, which remembers that over a reconnect: so by the date. */
  #nextClock(): number {
    this.#lastClock = Math.max(this.#lastClock + 1, this.#clock.wallNow());
    return this.#lastClock;
  }
}

function ownFields(state: unknown): Record<string, unknown> | null {
  if (typeof state !== "object" || state === null || Array.isArray(state)) return null;
  const { [RESERVED]: _, ...fields } = state as Record<string, unknown>;
  return fields;
}
