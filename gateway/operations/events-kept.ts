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
type RunningTakeover = { readonly seq: number; readonly first: TakenRoom; readonly rooms: Set<RoomKey> };

/** Moves between the same two servers within this time of the first one are one takeover, which counts a room once. */
const TAKEOVER_MS_MAX = 60_000;
const NAMES_MAX = 3;

/**
 * Counts the rooms that servers took over from lost servers, because a lost server had hundreds of rooms and each is an
 * event. The counts are kept per tenant. So a user who may see one room of a count may see all of them.
 */
class Takeovers {
  readonly #takeoversMax: number;
  /** The takeovers that may go on, by receiving server, lost server and tenant. */
  #running = new Map<string, RunningTakeover>();
  #all = new Map<number, TakeoverTally>();

  constructor(options: { takeoversMax: number }) {
    this.#takeoversMax = options.takeoversMax;
  }

  receive(seq: number, event: TakenRoom): void {
    const key = `${event.by} ${event.from} ${tenantOf(event.room)}`;
    const before = this.#running.get(key);
    const takeover = before !== undefined && goesOn(before, event.at) ? before : this.#begin(key, seq, event);
    const { seq: begun, first, rooms } = takeover;
    const names = this.#all.get(begun)?.rooms ?? [];
    const isNamed = rooms.has(event.room) || names.length >= NAMES_MAX;
    rooms.add(event.room);
    this.#all.set(begun, { seq: begun, first, newest: seq, count: rooms.size, rooms: isNamed ? names : [...names, event.room] });
    if (this.#all.size > this.#takeoversMax) this.#forgetOldest();
  }

  /** The rooms of takeovers that are over are forgotten here. */
  #begin(key: string, seq: number, first: TakenRoom): RunningTakeover {
    for (const [other, begun] of this.#running) if (!goesOn(begun, first.at)) this.#running.delete(other);
    const takeover = { seq, first, rooms: new Set<RoomKey>() };
    this.#running.set(key, takeover);
    return takeover;
  }

  /** Takeovers that have grown since, oldest first. */
  since(after: number, mayShow: (event: OperationsEvent) => boolean): readonly TakeoverTally[] {
    return [...this.#all.values()].filter(({ newest, first }) => newest > after && mayShow(first));
  }

  #forgetOldest(): void {
    const [[seq, { first }]] = this.#all as unknown as [[number, TakeoverTally]];
    this.#all.delete(seq);
    const key = `${first.by} ${first.from} ${tenantOf(first.room)}`;
    if (this.#running.get(key)?.seq === seq) this.#running.delete(key);
  }
}

function goesOn({ first }: RunningTakeover, at: number): boolean {
  return at - first.at <= TAKEOVER_MS_MAX;
}

function isTakeover(event: OperationsEvent): event is TakenRoom {
  return event.kind === "room_claimed" && event.from !== undefined;
}
