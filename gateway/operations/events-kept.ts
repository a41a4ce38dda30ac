/**
 * The newest events that operations were told of, numbered as the stream numbers them, so that whoever has some asks for
 * what came since, of whichever gateway.
 */

import type { OperationsEvent } from "../../shared/bus/operations-events.ts";
import { isTakeover, type Takeover, Takeovers } from "./takeovers.ts";

export type KeptEvent = { readonly seq: number; readonly event: OperationsEvent };
/** `takeovers`: rooms that were taken over are no events of their own. `last`: the newest seq there is, which may be of an event that is not shown. */
export type EventsSince = { readonly events: readonly KeptEvent[]; readonly takeovers: readonly Takeover[]; readonly last: number };

export class EventsKept {
  readonly #options: { readonly eventsMax: number; readonly takeoversMax: number };
  #events: KeptEvent[] = [];
  #takeovers: Takeovers;
  #last = 0;

  constructor(options: { eventsMax: number; takeoversMax: number }) {
    this.#options = options;
    this.#takeovers = new Takeovers(options);
  }

  get last(): number {
    return this.#last;
  }

  /** `event`: undefined for one that is only to be counted. A seq below the newest says that the stream was made anew. */
  receive(seq: number, event: OperationsEvent | undefined): void {
    if (seq <= this.#last) [this.#events, this.#takeovers] = [[], new Takeovers(this.#options)];
    this.#last = seq;
    if (event === undefined) return;
    if (isTakeover(event)) return this.#takeovers.receive(seq, event);
    this.#events.push({ seq, event });
    if (this.#events.length > this.#options.eventsMax) this.#events.shift();
  }

  /** The newest that came after that one and that may be shown, oldest first; of a stream that was made anew all. */
  since(after: number, eventsMax: number, mayShow: (event: OperationsEvent) => boolean): EventsSince {
    const from = after > this.#last ? 0 : after;
    const events = this.#events.filter(({ seq, event }) => seq > from && mayShow(event));
    return { events: events.slice(-eventsMax), takeovers: this.#takeovers.since(from, mayShow), last: this.#last };
  }
}
