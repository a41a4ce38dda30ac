/**
 * The awareness between one y-websocket client and its room. Only a client's messages about itself count, because it
 * also repeats everything that it receives, for example from its other tabs. Tabs compare awareness clocks, so each
 * client's own clock is sent through the room with its state. Clients of the SDK have no clock, and get the date as
 * clock. A client accepts "gone" with the clock that it knows, and a state only with a higher clock. So a client that
 * returns unchanged is announced with its clock plus one, and keeps this difference. Rules YAW1 to YAW12.
 */

import { equalityDeep } from "lib0/function";

import type { Millis } from "../shared/ids.ts";
import { type Rate, TokenBucket } from "../shared/limits/token-bucket.ts";
import type { Clock } from "../shared/time/clock.ts";
import { Y_CLOCK } from "../shared/wire/presence.ts";
import { RESERVED_FIELDS } from "../client/presence/awareness.ts";
import type { YjsProvider } from "../client/yjs/yjs-provider.ts";
import { type JsonPlace, readJson, visitStates, type YState } from "./y-websocket-protocol.ts";

export type BridgedAwareness = Pick<YjsProvider["awareness"], "clientID" | "states" | "setLocalState">;

/** Names that the SDK rejects or uses itself. */
const RESERVED = new Set([...RESERVED_FIELDS, Y_CLOCK]);
const NAME_LENGTH_MAX = 64;
/** More than the SDK accepts for all fields together. */
const STATE_CHARACTERS_MAX = 8_192;
const NOTHING = "null";
/**
 * Less than the 15 s after which clients raise their clock. A shorter time would make tabs, which repeat the state to
 * its own client, answer each other endlessly.
 */
const AHEAD_MS = 10_000;
/**
 * Maximum number of departed clients that are remembered. A client forgotten too early is shown again at its next
 * clock.
 */
const GONE_MAX = 1_000;
/** Higher clocks are ignored, because the clock plus one must be a number that clients can read. */
const CLOCK_MAX = 2 ** 50;

/**
 * Rate at which the client's own states are shown. The newest one waits and replaces those before it. A state of 4 KiB
 * takes up to 1 ms, and the room's connection sends 20 states per second.
 */
const SHOWS: Rate = { burst: 40, perSecond: 40 };

type OwnState = { readonly json: string; readonly clock: number };
type Fields = Record<string, unknown>;
/** `own`: the client's own clock. `clock`: the clock sent to the y-websocket client, since `at`. */
type SentState = { readonly own: number; readonly clock: number; readonly fields: Fields; readonly at: Millis };

export class YAwareness {
  readonly #room: BridgedAwareness;
  readonly #clock: Clock;
  /** The y-websocket client's id. Undefined: not known yet. */
  #own: number | undefined;
  readonly #sent = new Map<number, SentState>();
  /** The clock with which each departed client was announced as gone. */
  readonly #gone = new Map<number, number>();
  #lastDate = 0;
  readonly #shows: TokenBucket;
  #newest: OwnState = { json: NOTHING, clock: -1 };
  /** The newest state waits for the rate. */
  #stopWaiting: (() => void) | undefined;

  /** Shows nothing until the client sends a state. */
  constructor(room: BridgedAwareness, own: number | undefined, clock: Clock) {
    this.#room = room;
    this.#own = own;
    this.#clock = clock;
    this.#shows = new TokenBucket(SHOWS, clock.now());
    room.setLocalState(null);
  }

  /** `bytes`: of an awareness message. Of several states of the client only the newest is read. */
  receiveStates(bytes: Uint8Array): void {
    this.#own ??= this.#newClientIn(bytes);
    let newest: { readonly clock: number; readonly json: JsonPlace } | undefined;
    visitStates(bytes, (client, clock, json) => {
      if (client === this.#own && (newest === undefined ? clock >= this.#newest.clock : clock > newest.clock)) newest = { clock, json };
    });
    if (newest !== undefined) this.#receiveOwn({ clock: newest.clock, json: readJson(bytes, newest.json) });
  }

  /** The client has left: a state that waits is not shown. */
  stop(): void {
    this.#stopWaiting?.();
  }

  #receiveOwn({ clock, json }: OwnState): void {
    if (json === this.#newest.json && clock === this.#newest.clock) return;
    this.#newest = { clock, json: json.length > STATE_CHARACTERS_MAX ? NOTHING : json };
    if (this.#stopWaiting !== undefined) return;
    if (this.#shows.take(this.#clock.now())) return this.#showNewest();
    this.#stopWaiting = this.#clock.after(1_000 / SHOWS.perSecond, () => {
      this.#stopWaiting = undefined;
      this.#shows.spend(this.#clock.now(), 1);
      this.#showNewest();
    });
  }

  #showNewest(): void {
    const fields = fieldsOf(this.#newest.json);
    this.#room.setLocalState(fields === undefined ? null : { ...fields, [Y_CLOCK]: this.#newest.clock });
  }

  /** No object with a field is as short as `null`. */
  #newClientIn(bytes: Uint8Array): number | undefined {
    let first: number | undefined;
    visitStates(bytes, (client, _, { length }) => {
      if (first === undefined && length !== NOTHING.length && !this.#sent.has(client)) first = client;
    });
    return first;
  }

  /** Returns the states of these clients as they are sent to the y-websocket client. */
  statesOf(clients: readonly number[]): YState[] {
    this.#lastDate = Math.max(this.#lastDate + 1, this.#clock.wallNow());
    const others = clients.filter((client) => client !== this.#room.clientID && client !== this.#own);
    return others.map((client) => this.#stateOf(client));
  }

  /** All states. A client forgets another client if it receives no update about it for 30 s. */
  allStates(): YState[] {
    return this.statesOf([...this.#room.states.keys()]);
  }

  #stateOf(client: number): YState {
    const state = this.#room.states.get(client) as Fields | undefined;
    if (state === undefined) return { client, clock: this.#clockOfGone(client), json: NOTHING };
    const { [Y_CLOCK]: own, ...fields } = state;
    // A state without its own clock gets the date: clients remember clocks over a reconnect, and this object starts
    // empty.
    return { client, clock: this.#clockOf(client, isClock(own) ? own : this.#lastDate, fields), json: JSON.stringify(fields) };
  }

  /** A client accepts a removal with the clock that it received last. */
  #clockOfGone(client: number): number {
    const clock = this.#sent.get(client)?.clock ?? this.#gone.get(client) ?? 0;
    this.#sent.delete(client);
    this.#gone.delete(client); // Moves the entry to the end.
    this.#gone.set(client, clock);
    if (this.#gone.size > GONE_MAX) this.#gone.delete(this.#gone.keys().next().value!);
    return clock;
  }

  #clockOf(client: number, own: number, fields: Fields): number {
    const now = this.#clock.now();
    const before = this.#sent.get(client);
    const known = before?.clock ?? this.#gone.get(client) ?? -1;
    const isRenewed = before === undefined || (own !== before.own && now - before.at >= AHEAD_MS);
    const isKnown = own <= known && !isRenewed && equalityDeep(before.fields, fields);
    const clock = isKnown ? known : Math.max(own, known + 1);
    this.#gone.delete(client);
    this.#sent.set(client, { own, clock, fields, at: isKnown ? before.at : now });
    return clock;
  }
}

function isClock(own: unknown): own is number {
  return Number.isSafeInteger(own) && (own as number) >= 0 && (own as number) <= CLOCK_MAX;
}

/** Undefined: nothing to show. Fields that the SDK rejects are left out. */
function fieldsOf(json: string): Fields | undefined {
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
    return undefined; // Shown as nothing, like any value that is no object.
  }
}
