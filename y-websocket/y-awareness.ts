/**
 * What one y-websocket client shows and is shown, between its awareness and the room's. Rules YAW1 to YAW9.
 *
 * Of what the client says only what it says of itself counts: it repeats to its server whatever it hears, from that and
 * from tabs beside it, which are here by themselves. Those tabs it tells, too, what it was told of them, and they go by
 * whose clock is higher, for themselves as well. So each client's own clock goes through the room beside its state, and
 * is what others are told; only for clients of the SDK, which have none, the date is.
 *
 * A client believes "gone" under the clock that it knows, and a state only under a higher one. So who comes back as they
 * were, above all when the bridge had lost the room for a moment, is told with one more, and keeps ahead by that.
 */

import { equalityDeep } from "lib0/function";

import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import type { Clock } from "../shared/clock.ts";
import type { Millis } from "../shared/ids.ts";
import { Y_CLOCK } from "../shared/wire/presence.ts";
import type { YState } from "./protocol.ts";

export type RoomAwareness = Pick<YjsProvider["awareness"], "clientID" | "states" | "setLocalState">;

/** Names that the SDK does not take, or keeps to itself. */
const RESERVED = new Set(["yjs", Y_CLOCK]);
const NAME_LENGTH_MAX = 64;
/** More than the SDK takes of all fields together. */
const STATE_CHARACTERS_MAX = 8_192;
const NOTHING = "null";
/**
 * Less than clients let pass before they tell a higher clock, 15 s; told oftener, tabs that repeat it to the one that
 * it is of would go round in circles.
 */
const AHEAD_MS = 10_000;
/** Of those who were here and are gone; whoever went longest ago is forgotten, and would be seen with its next clock. */
const GONE_MAX = 1_000;
/** Higher ones are not believed: one more must be a number that clients can read. */
const CLOCK_MAX = 2 ** 50;

type Fields = Record<string, unknown>;
/** `own`: the client's own clock, `clock`: what it was told under, since `at`. */
type Told = { readonly own: number; readonly clock: number; readonly fields: Fields; readonly at: Millis };

export class YAwareness {
  readonly #room: RoomAwareness;
  readonly #clock: Pick<Clock, "now" | "wallNow">;
  /** Who the client is. Undefined: it has not said yet. */
  #own: number | undefined;
  readonly #told = new Map<number, Told>();
  /** Under which clock the client was told that they are gone. */
  readonly #gone = new Map<number, number>();
  #lastDate = 0;
  #shown = { json: NOTHING, clock: -1 };

  /** Shows nothing until the client does. */
  constructor(room: RoomAwareness, own: number | undefined, clock: Pick<Clock, "now" | "wallNow">) {
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
      this.#room.setLocalState(fields === undefined ? null : { ...fields, [Y_CLOCK]: clock });
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

  #stateOf(client: number): YState {
    const state = this.#room.states.get(client) as Fields | undefined;
    if (state === undefined) return { client, clock: this.#clockOfGone(client), json: NOTHING };
    const { [Y_CLOCK]: own, ...fields } = state;
    // By the date: clients remember clocks over a reconnect, and this begins anew.
    return { client, clock: this.#clockOf(client, isClock(own) ? own : this.#lastDate, fields), json: JSON.stringify(fields) };
  }

  /** That somebody is gone is believed under the clock of what was told last. */
  #clockOfGone(client: number): number {
    const clock = this.#told.get(client)?.clock ?? this.#gone.get(client) ?? 0;
    this.#told.delete(client);
    this.#gone.delete(client); // To be the last in it.
    this.#gone.set(client, clock);
    if (this.#gone.size > GONE_MAX) this.#gone.delete(this.#gone.keys().next().value!);
    return clock;
  }

  #clockOf(client: number, own: number, fields: Fields): number {
    const now = this.#clock.now();
    const before = this.#told.get(client);
    const known = before?.clock ?? this.#gone.get(client) ?? -1;
    const isRenewed = before === undefined || (own !== before.own && now - before.at >= AHEAD_MS);
    const isKnown = own <= known && !isRenewed && equalityDeep(before.fields, fields);
    const clock = isKnown ? known : Math.max(own, known + 1);
    this.#gone.delete(client);
    this.#told.set(client, { own, clock, fields, at: isKnown ? before.at : now });
    return clock;
  }
}

function isClock(own: unknown): own is number {
  return Number.isSafeInteger(own) && (own as number) >= 0 && (own as number) <= CLOCK_MAX;
}

/** Undefined: nothing to be shown. What the SDK takes under no name is left out. */
function fieldsOf(json: string): Fields | undefined {
  if (json.length > STATE_CHARACTERS_MAX) return undefined;
  const state = parsed(json);
  if (typeof state !== "object" || state === null || Array.isArray(state)) return undefined;
  return Object.fromEntries(
    Object.entries(state).filter(
      ([name]) => name.length >= 1 && name.length <= NAME_LENGTH_MAX && name.isWellFormed() && !name.startsWith("@") && !RESERVED.has(name),
    ),
  );
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // Shown as nothing, as whatever is no object.
  }
}
