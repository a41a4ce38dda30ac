/**
 * The clients that have not taken all that they were sent, looked at often; all others seldom. Bytes are counted as
 * they are sent only while somebody is behind, those of a publish once for its topic.
 */

import type { WebSocket } from "uws-node20";

import { Outbound, type OutboundOptions } from "../outbound.ts";
import type { ConnectionId } from "../ports.ts";

/** From one look at those who are behind to the next; in as many looks again it is looked who is. */
export const LOOK_MS = 250;
const LOOKS_PER_SWEEP = 4;

export class BehindClients {
  readonly #open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount" | "getTopics">>;
  readonly #options: OutboundOptions;
  readonly #behind = new Map<ConnectionId, Outbound>();
  readonly #sentTo = new Map<ConnectionId, number>();
  readonly #publishedTo = new Map<string, number>();
  #looks = 0;

  constructor(open: ReadonlyMap<ConnectionId, Pick<WebSocket<unknown>, "getBufferedAmount" | "getTopics">>, options: Omit<OutboundOptions, "lookMs">) {
    this.#open = open;
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

  sent(to: ConnectionId, bytes: number): void {
    if (this.#behind.has(to)) this.#sentTo.set(to, (this.#sentTo.get(to) ?? 0) + bytes);
  }

  published(topic: string, bytes: number): void {
    if (this.#behind.size > 0) this.#publishedTo.set(topic, (this.#publishedTo.get(topic) ?? 0) + bytes);
  }

  /** Every LOOK_MS. Who is to be closed. */
  look(): ConnectionId[] {
    const slow: ConnectionId[] = [];
    for (const [connection, outbound] of this.#behind) {
      const socket = this.#open.get(connection);
      const waiting = socket?.getBufferedAmount() ?? 0;
      if (socket === undefined || waiting === 0) {
        this.#behind.delete(connection);
        continue;
      }
      const published = socket.getTopics().reduce((bytes, topic) => bytes + (this.#publishedTo.get(topic) ?? 0), 0);
      outbound.receiveLook((this.#sentTo.get(connection) ?? 0) + published, waiting);
      if (outbound.isSlow()) slow.push(connection);
    }
    this.#sentTo.clear();
    this.#publishedTo.clear();
    this.#looks += 1;
    if (this.#looks % LOOKS_PER_SWEEP === 0) this.#sweep();
    return slow;
  }

  #sweep(): void {
    for (const [connection, socket] of this.#open) {
      const waiting = socket.getBufferedAmount();
      if (waiting === 0 || this.#behind.has(connection)) continue;
      const outbound = new Outbound(this.#options);
      outbound.receiveLook(0, waiting);
      this.#behind.set(connection, outbound);
    }
  }
}
