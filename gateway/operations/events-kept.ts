/**
 * The newest operations events with their stream numbers, so that a console can ask any gateway for events after the
 * ones it has.
 */

import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import { type RoomKey, tenantOf } from "../../shared/ids.ts";

type KeptEvent = { readonly seq: number; readonly event: OperationsEvent };
/** `takeovers` summarise rooms that were taken over. `last` is the newest seq, whose event may not be shown. */
export type KeptEventsSince = {
  readonly events: readonly KeptEvent[];
  readonly takeovers: readonly TakeoverTally[];
  readonly last: number;
};

export class RecentEventLog {
  readonly #options: { readonly eventsMax: number; readonly takeoversMax: number };
  #notable: KeptEvent[] = [];
  /** Kept apart, so that a thousand opened rooms displace no failure. */
  #routine: KeptEvent[] = [];
  #takeovers: Takeovers;
  #last = 0;

  constructor(options: { eventsMax: number; takeoversMax: number }) {
    this.#options = options;
    this.#takeovers = new Takeovers(options);
  }

  /** `event` is undefined when only its seq counts. A seq below the newest means that the stream was created again. */
  receiveEvent(seq: number, event: OperationsEvent | undefined): void {
    if (seq <= this.#last) [this.#notable, this.#routine, this.#takeovers] = [[], [], new Takeovers(this.#options)];
    this.#last = seq;
    if (event === undefined) return;
    if (isTakeover(event)) return this.#takeovers.receive(seq, event);
    const kept = ROUTINE.has(event.kind) ? this.#routine : this.#notable;
    kept.push({ seq, event });
    if (kept.length > this.#options.eventsMax) kept.shift();
  }

  /**
   * The newest visible events after a seq, oldest first: at most `eventsMax` routine ones and as many others. All of them
   * when the stream was created anew.
   */
  since(after: number, eventsMax: number, mayShow: (event: OperationsEvent) => boolean): KeptEventsSince {
    const from = after > this.#last ? 0 : after;
    const newest = (kept: readonly KeptEvent[]): KeptEvent[] =>
      kept.filter(({ seq, event }) => seq > from && mayShow(event)).slice(-eventsMax);
    const events = [...newest(this.#routine), ...newest(this.#notable)].sort((a, b) => a.seq - b.seq);
    return { events, takeovers: this.#takeovers.since(from, mayShow), last: this.#last };
  }
}

/** Frequent while nothing is wrong. */
const ROUTINE: ReadonlySet<OperationsEvent["kind"]> = new Set(["room_claimed", "room_ended", "room_placed"]);

/** `seq` and `first` are those of the first room's event, `newest` the seq of the last. `rooms` are the first few. */
export type TakeoverTally = {
  readonly seq: number;
  readonly first: TakenRoom;
  readonly newest: number;
  readonly count: number;
  readonly rooms: readonly RoomKey[];
};
type TakenRoom = OperationsEvent & { readonly kind: "room_claimed"; readonly from: string };

/** Moves between the same two servers within this time of the first one are one takeover. */
const TAKEOVER_MS_MAX = 60_000;
const NAMES_MAX = 3;

/**
 * Counts the rooms that servers took over from lost servers, because a lost server had hundreds of rooms and each is an
 * event. The counts are kept per tenant. So a user who may see one room of a count may see all of them.
 */
class Takeovers {
  readonly #takeoversMax: number;
  /** The newest takeover per receiving server, lost server and tenant, in order of their beginning. */
  #newest = new Map<string, TakeoverTally>();
  #all = new Map<number, TakeoverTally>();

  constructor(options: { takeoversMax: number }) {
    this.#takeoversMax = options.takeoversMax;
  }

  receive(seq: number, event: TakenRoom): void {
    const key = `${event.by} ${event.from} ${tenantOf(event.room)}`;
    const before = this.#newest.get(key);
    const goesOn = before !== undefined && event.at - before.first.at <= TAKEOVER_MS_MAX;
    const { seq: begun, first, count, rooms } = goesOn ? before : { seq, first: event, count: 0, rooms: [] };
    const takeover = { seq: begun, first, newest: seq, count: count + 1, rooms: [...rooms, event.room].slice(0, NAMES_MAX) };
    this.#newest.set(key, takeover);
    this.#all.set(begun, takeover);
    if (this.#all.size > this.#takeoversMax) this.#forgetOldest();
  }

  /** Takeovers that have grown since, oldest first. */
  since(after: number, mayShow: (event: OperationsEvent) => boolean): readonly TakeoverTally[] {
    return [...this.#all.values()].filter(({ newest, first }) => newest > after && mayShow(first));
  }

  #forgetOldest(): void {
    const [[seq, { first }]] = this.#all as unknown as [[number, TakeoverTally]];
    this.#all.delete(seq);
    const key = `${first.by} ${first.from} ${tenantOf(first.room)}`;
    if (this.#newest.get(key)?.seq === seq) this.#newest.delete(key);
  }
}

function isTakeover(event: OperationsEvent): event is TakenRoom {
  return event.kind === "room_claimed" && event.from !== undefined;
}
