/**
 * The clients that have not taken all that they were sent, looked at often; all others seldom. Bytes are counted as
 * they are sent only while somebody is behind, those of a publish once for its topic.
 */

import type { WebSocket } from "uws-node20";

import { Outbound, type OutboundOptions } from "../limits/outbound.ts";
import type { ConnectionId, Pace } from "../ports.ts";

/** From one look at those who are behind to the next; in as many looks again it is looked who is. */
export const LOOK_MS = 250;
const LOOKS_PER_SWEEP = 4;
/** So many slow lines may be the clients' own, however few there are in all. */
const SLOW_LINES = 9;

export type BehindOptions = Omit<OutboundOptions, "lookMs"> & { readonly behindBytesMax: number };

export class BehindClients {
  readonly #open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount" | "getTopics">>;
  readonly #options: OutboundOptions;
  readonly #behindBytesMax: number;
  readonly #behind = new Map<ConnectionId, Outbound>();
  /** Those that so much waits for that the gateway was told. */
  readonly #farBehind = new Set<ConnectionId>();
  readonly #sentTo = new Map<ConnectionId, number>();
  readonly #publishedTo = new Map<string, number>();
  #looks = 0;

  constructor(open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount" | "getTopics">>, options: BehindOptions) {
    this.#open = open;
    this.#behindBytesMax = options.behindBytesMax;
    this.#options = { slowBytesMax: options.slowBytesMax, slowMsMax: options.slowMsMax, lookMs: LOOK_MS };
  }

  get count(): number {
    return this.#behind.size;
  }

  get bytes(): number {
    let bytes = 0;
    for (const outbound of this.#behind.values()) bytes += outbound.bytes;
    return bytes;
  }

  /** For how long the oldest has waited that a connection has not taken: the p99 of all connections. */
  get p99AgeMs(): number {
    const worseOff = Math.max(SLOW_LINES, Math.floor(this.#open.size / 100));
    if (this.#behind.size <= worseOff) return 0;
    return Array.from(this.#behind.values(), ({ ageMs }) => ageMs).sort((a, b) => b - a)[worseOff]!;
  }

  sent(to: ConnectionId, bytes: number): void {
    if (this.#behind.has(to)) this.#sentTo.set(to, (this.#sentTo.get(to) ?? 0) + bytes);
  }

  published(topic: string, bytes: number): void {
    if (this.#behind.size > 0) this.#publishedTo.set(topic, (this.#publishedTo.get(topic) ?? 0) + bytes);
  }

  /** Every LOOK_MS. Whose pace has changed. */
  look(): [ConnectionId, Pace][] {
    const changed: [ConnectionId, Pace][] = [];
    for (const [connection, outbound] of this.#behind) {
      const socket = this.#open.get(connection);
      const waiting = socket?.getBufferedAmount() ?? 0;
      if (socket === undefined || waiting === 0) {
        this.#behind.delete(connection);
        if (this.#farBehind.delete(connection)) changed.push([connection, "keeping-up"]);
        continue;
      }
      const published = socket.getTopics().reduce((bytes, topic) => bytes + (this.#publishedTo.get(topic) ?? 0), 0);
      outbound.receiveLook((this.#sentTo.get(connection) ?? 0) + published, waiting);
      if (outbound.isSlow()) changed.push([connection, "stuck"]);
      else if (waiting > this.#behindBytesMax && !this.#farBehind.has(connection)) {
        this.#farBehind.add(connection);
        changed.push([connection, "behind"]);
      }
    }
    this.#sentTo.clear();
    this.#publishedTo.clear();
    this.#looks += 1;
    if (this.#looks % LOOKS_PER_SWEEP === 0) this.#sweep();
    return changed;
  }

  #sweep(): void {
    this.#open.forEach((socket, connection) => {
      const waiting = socket.getBufferedAmount();
      if (waiting === 0 || this.#behind.has(connection)) return;
      const outbound = new Outbound(this.#options);
      outbound.receiveLook(0, waiting);
      this.#behind.set(connection, outbound);
    });
  }
}
