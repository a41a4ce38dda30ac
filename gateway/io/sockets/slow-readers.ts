/**
 * Finds clients with unread data, and measures the age of that data. Clients with unread data are checked often, all
 * others rarely. Sent bytes are counted only while a client has unread data. The bytes of a publication are counted
 * once per topic instead of once per listener.
 */

import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import { OutboundLag, type OutboundOptions } from "../../limits/outbound.ts";
import type { ConnectionId, ReadProgress } from "../../ports.ts";

/** Interval between two checks of the clients with unread data. Every few checks, all clients are checked. */
export const CHECK_MS = 250;
const LOOKS_PER_SWEEP = 4;
/** Beyond this delay people notice that they see old content. */
const LAGGING_MS = 1_000;
/** This many connections may be slow because of their clients, even in a small gateway. */
const SLOW_CLIENTS = 9;

type SlowReaderOptions = Omit<OutboundOptions, "lookMs"> & { readonly behindBytesMax: number };

export class SlowReaders {
  readonly #open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount" | "getTopics">>;
  readonly #options: OutboundOptions;
  readonly #behindBytesMax: number;
  readonly #isCatchingUp: (connection: ConnectionId) => boolean;
  readonly #behind = new Map<ConnectionId, OutboundLag>();
  /** Connections with so much unread data that the gateway was informed. */
  readonly #farBehind = new Set<ConnectionId>();
  readonly #sentTo = new Map<ConnectionId, number>();
  readonly #publishedTo = new Map<string, number>();
  #looks = 0;

  /** `isCatchingUp`: a connection that receives more once it has read what it was sent. */
  constructor(
    open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount" | "getTopics">>,
    options: SlowReaderOptions,
    isCatchingUp: (connection: ConnectionId) => boolean = () => false,
  ) {
    this.#open = open;
    this.#isCatchingUp = isCatchingUp;
    this.#behindBytesMax = options.behindBytesMax;
    this.#options = { slowBytesMax: options.slowBytesMax, slowMsMax: options.slowMsMax, lookMs: CHECK_MS };
  }

  get count(): number {
    return this.#behind.size;
  }

  /** Connections whose oldest unread data is older than `LAGGING_MS`. */
  get laggingCount(): number {
    let count = 0;
    for (const { ageMs } of this.#behind.values()) if (ageMs > LAGGING_MS) count += 1;
    return count;
  }

  get bytes(): number {
    let bytes = 0;
    for (const outbound of this.#behind.values()) bytes += outbound.bytes;
    return bytes;
  }

  /** Age of a connection's oldest unread data: the p99, without connections that catch up as fast as their clients read. */
  get p99AgeMs(): number {
    const worseOff = Math.max(SLOW_CLIENTS, Math.floor(this.#open.size / 100));
    if (this.#behind.size <= worseOff) return 0;
    const ages: number[] = [];
    for (const [connection, { ageMs }] of this.#behind) if (!this.#isCatchingUp(connection)) ages.push(ageMs);
    return ages.sort((a, b) => b - a)[worseOff] ?? 0;
  }

  countSent(to: ConnectionId, bytes: number): void {
    if (this.#behind.has(to)) this.#sentTo.set(to, (this.#sentTo.get(to) ?? 0) + bytes);
  }

  countPublished(topic: string, bytes: number): void {
    if (this.#behind.size > 0) this.#publishedTo.set(topic, (this.#publishedTo.get(topic) ?? 0) + bytes);
  }

  /** Call every CHECK_MS. Returns the connections whose state has changed. */
  look(): [ConnectionId, ReadProgress][] {
    const changed: [ConnectionId, ReadProgress][] = [];
    for (const [connection, outbound] of this.#behind) {
      const socket = this.#open.get(connection);
      const waiting = socket?.getBufferedAmount() ?? 0;
      if (socket === undefined || waiting === 0) {
        this.#behind.delete(connection);
        if (this.#farBehind.delete(connection)) changed.push([connection, "keeping-up"]);
        continue;
      }
      const published = socket.getTopics().reduce((bytes, topic) => bytes + (this.#publishedTo.get(topic) ?? 0), 0);
      outbound.receiveCheck((this.#sentTo.get(connection) ?? 0) + published, waiting);
      if (outbound.isSlow(this.#isCatchingUp(connection))) changed.push([connection, "stuck"]);
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
      const outbound = new OutboundLag(this.#options);
      outbound.receiveCheck(0, waiting);
      this.#behind.set(connection, outbound);
    });
  }
}
