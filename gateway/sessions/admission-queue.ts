/**
 * Limits the rate at which connections are admitted. Some are admitted each second, the next ones wait in a short
 * queue, and the rest are rejected. Connections are admitted in the order of arrival: a new connection never overtakes
 * a waiting one.
 */

import type { Millis } from "../../shared/ids.ts";
import { TokenBucket } from "../../shared/limits/token-bucket.ts";

/** `connectQueueBytesMax`: maximum bytes of the frames that all queued connections have sent, overhead included. */
export type AdmissionQueueOptions = {
  readonly connectsPerSecondMax: number;
  readonly connectQueueMax: number;
  readonly connectQueueBytesMax: number;
};

/** This fraction of a second's connections is admitted at once. */
const BURST_SECONDS = 0.05;
/** Memory of an array of bytes in addition to its bytes. If it did not count, a client could send empty frames without end. */
const FRAME_OVERHEAD_BYTES = 200;

type Queued = { readonly since: Millis; readonly frames: Uint8Array[]; bytes: number };
type Admitted<Connection> = { readonly connection: Connection; readonly waitedMs: number; readonly frames: readonly Uint8Array[] };

export class AdmissionQueue<Connection> {
  readonly #options: AdmissionQueueOptions;
  readonly #bucket: TokenBucket;
  /** In the order of arrival. */
  readonly #queue = new Map<Connection, Queued>();
  #bytes = 0;

  constructor(options: AdmissionQueueOptions, now: Millis) {
    const { connectsPerSecondMax: perSecond } = options;
    this.#options = options;
    this.#bucket = new TokenBucket({ burst: Math.max(1, perSecond * BURST_SECONDS), perSecond }, now);
  }

  get size(): number {
    return this.#queue.size;
  }

  /** In the order of arrival. */
  connections(): readonly Connection[] {
    return [...this.#queue.keys()];
  }

  receiveConnection(connection: Connection, now: Millis): "admitted" | "queued" | "rejected" {
    if (this.#queue.size === 0 && this.#bucket.take(now)) return "admitted";
    if (this.#queue.size >= this.#options.connectQueueMax) return "rejected";
    this.#queue.set(connection, { since: now, frames: [], bytes: 0 });
    return "queued";
  }

  /** Keeps a copy of the frame. `rejected`: all frames have too many bytes, so the connection has lost its place. */
  receiveFrame(connection: Connection, bytes: Uint8Array): "kept" | "rejected" | "not-queued" {
    const queued = this.#queue.get(connection);
    if (queued === undefined) return "not-queued";
    const size = bytes.byteLength + FRAME_OVERHEAD_BYTES;
    if (this.#bytes + size > this.#options.connectQueueBytesMax) {
      this.remove(connection);
      return "rejected";
    }
    queued.frames.push(bytes.slice());
    queued.bytes += size;
    this.#bytes += size;
    return "kept";
  }

  /** Frees the place of a connection that has closed. */
  remove(connection: Connection): void {
    this.#bytes -= this.#queue.get(connection)?.bytes ?? 0;
    this.#queue.delete(connection);
  }

  /** Connections that are admitted now, the time that each has waited, and the frames that it has sent meanwhile. */
  admitDue(now: Millis): readonly Admitted<Connection>[] {
    const admitted: Admitted<Connection>[] = [];
    for (const [connection, { since, frames }] of this.#queue) {
      if (!this.#bucket.take(now)) break;
      this.remove(connection);
      admitted.push({ connection, waitedMs: now - since, frames });
    }
    return admitted;
  }
}
