/**
 * What one y-websocket client shows and is shown, between its awareness and the room's. Rules YAW1 to YAW6.
 *
 * Of what the client says only what it says of itself counts: it repeats to its server whatever it hears, from that and
 * from tabs beside it, which are here by themselves. Those tabs it tells, too, what it was told of them, and they go by
 * whose clock is higher, for themselves as well. So each client's own clock goes through the room beside its state, and
 * is what others are told; only for clients of the SDK, which have none, the date is.
 */

import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import type { Clock } from "../shared/clock.ts";
import type { YState } from "./protocol.ts";

export type RoomAwareness = Pick<YjsProvider["awareness"], "clientID" | "states" | "setLocalState">;

/** In which a client's clock goes along. */
const CLOCK = "y-websocket";
/** Names that the SDK does not take, or keeps to itself. */
const RESERVED = new Set(["yjs", CLOCK]);
const NAME_LENGTH_MAX = 64;
/** More than the SDK takes of all fields together. */
const STATE_CHARACTERS_MAX = 8_192;
const NOTHING = "null";

type Fields = Record<string, unknown>;

export class YAwareness {
  readonly #room: RoomAwareness;
  readonly #clock: Pick<Clock, "wallNow">;
  /** Who the client is. Undefined: it has not said yet. */
  #own: number | undefined;
  /** Whom this client was told of, with which clock. */
  readonly #told = new Map<number, number>();
  #lastDate = 0;
  #shown = { json: NOTHING, clock: -1 };

  /** Shows nothing until the client does. */
  constructor(room: RoomAwareness, own: number | undefined, clock: Pick<Clock, "wallNow">) {
    this.#room = room;
    this.#own = own;
    this.#clock = clock;
    room.setLocalState(null);
  }

  receive(states: readonly YState[]): void {
    this.#own ??= states.find(({ client, json }) => json !== NOTHING && !this.#told.has(client))?.client;
    for (const { client, clock, json } of states) {
      if (client !== this.#own || clock < this.#shown.clock || (clock === this.#shown.clock && json === this.#shown.json)) continue;
      this.#shown = { json, clock };
      const fields = fieldsOf(json);
      this.#room.setLocalState(fields === undefined ? null : { ...fields, [CLOCK]: clock });
    }
  }

  /** What the client is to be told of them. */
  tell(clients: readonly number[]): YState[] {
    this.#lastDate = Math.max(this.#lastDate + 1, this.#clock.wallNow());
    const others = clients.filter((client) => client !== this.#room.clientID && client !== this.#own);
    return others.map((client) => this.#stateOf(client));
  }

  /** Everybody: a client forgets whom it was not told of for 30 s. */
  tellAll(): YState[] {
    return this.tell([...this.#room.states.keys()]);
  }

  /** That somebody is gone is believed under the clock of what was told last. */
  #stateOf(client: number): YState {
    const state = this.#room.states.get(client) as Fields | undefined;
    if (state === undefined) {
      const clock = this.#told.get(client) ?? this.#lastDate;
      this.#told.delete(client);
      return { client, clock, json: NOTHING };
    }
    const { [CLOCK]: own, ...fields } = state;
    const clock = Number.isSafeInteger(own) && (own as number) >= 0 ? (own as number) : this.#lastDate; // By the date: clients remember clocks over a reconnect, and this begins anew.
    this.#told.set(client, clock);
    return { client, clock, json: JSON.stringify(fields) };
  }
}

/** Undefined: nothing to be shown. What the SDK takes under no name is left out. */
function fieldsOf(json: string): Fields | undefined {
  if (json.length > STATE_CHARACTERS_MAX) return undefined;
  const state = parsed(json);
  if (typeof state !== "object" || state === null || Array.isArray(state)) return undefined;
  return Object.fromEntries(Object.entries(state).filter(([name]) => name.length >= 1 && name.length <= NAME_LENGTH_MAX && name.isWellFormed() && !name.startsWith("@") && !RESERVED.has(name)));
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // Shown as nothing, as whatever is no object.
  }
}
