/**
 * Joins the parts of frames (WIRE54), and passes all other frames on. All unfinished frames of a gateway share one
 * limit. Above it the connection with the oldest unfinished frame is closed: an honest client sends the parts of a
 * frame without a pause, so its unfinished frame is never old. Invalid parts go to the session, which refuses them.
 */

import { joinBytes } from "../../shared/collections/bytes.ts";
import { encodeFrame, decodeFrame } from "../../shared/wire/codec.ts";
import { FrameType } from "../../shared/wire/frames.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import type { ClientAddress } from "../../shared/limits/client-address.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Clients, ConnectionId, ReadProgress, Sockets } from "../ports.ts";
import { closingEffects } from "./session-effects.ts";

type PartialFramesOptions = {
  readonly messageBytesMax: number;
  readonly frameBytesMax: number;
  readonly partialBytesMax: number;
};
type WholeFramesOptions = PartialFramesOptions & { readonly retryAfterMs: number };

const WHY = "too many unfinished frames: send the parts of a frame one after another";

export class WholeFrames implements Clients {
  readonly #clients: Clients;
  readonly #sockets: Sockets;
  readonly #options: WholeFramesOptions;
  readonly #metrics: Pick<GatewayMetrics, "partialBytes" | "partialBytesMax" | "limitsReached" | "closes">;
  readonly #partial: PartialFrames;

  constructor(
    clients: Clients,
    sockets: Sockets,
    options: WholeFramesOptions,
    metrics: Pick<GatewayMetrics, "partialBytes" | "partialBytesMax" | "limitsReached" | "closes">,
  ) {
    this.#clients = clients;
    this.#sockets = sockets;
    this.#options = options;
    this.#metrics = metrics;
    this.#partial = new PartialFrames(options);
    metrics.partialBytesMax.set(options.partialBytesMax);
  }

  receiveConnection(connection: ConnectionId, address: ClientAddress | undefined): void {
    this.#clients.receiveConnection(connection, address);
  }

  receiveFrame(connection: ConnectionId, bytes: Uint8Array): void {
    const payload = partOf(bytes, this.#options.messageBytesMax);
    if (payload === undefined) return this.#clients.receiveFrame(connection, bytes, "message");
    const frame = this.#partial.receivePart(connection, payload.bytes, payload.isLast);
    if (frame !== undefined) this.#clients.receiveFrame(connection, frame, "parts");
    for (const oldest of this.#partial.takeExcess()) this.#close(oldest);
    this.#metrics.partialBytes.set(this.#partial.bytes);
  }

  receiveReadProgress(connection: ConnectionId, progress: ReadProgress): void {
    this.#clients.receiveReadProgress(connection, progress);
  }

  receiveDisconnection(connection: ConnectionId): void {
    this.#partial.forget(connection);
    this.#metrics.partialBytes.set(this.#partial.bytes);
    this.#clients.receiveDisconnection(connection);
  }

  #close(connection: ConnectionId): void {
    this.#metrics.limitsReached.inc({ limit: "partial-frames" });
    for (const effect of closingEffects("overloaded", WHY, this.#options.retryAfterMs)) {
      if (effect.kind === "send") this.#sockets.send(connection, encodeFrame(effect.frame));
      else {
        this.#metrics.closes.inc({ close: effect.close });
        this.#sockets.close(connection, effect.close);
      }
    }
  }
}

/** Undefined: not a valid part. The bytes are valid during the call only. */
function partOf(message: Uint8Array, messageBytesMax: number): { readonly bytes: Uint8Array; readonly isLast: boolean } | undefined {
  if (message[0] !== FrameType.part || message.byteLength > messageBytesMax) return undefined;
  const part = decodeFrame(message);
  if (part?.type !== "part") return undefined;
  const isLast = part.flags.last;
  return isLast || part.payload.byteLength >= PART_BYTES_MIN ? { bytes: part.payload, isLast } : undefined;
}

/** The unfinished frames of all connections, the oldest first. At most one per connection. */
class PartialFrames {
  readonly #options: PartialFramesOptions;
  readonly #parts = new Map<ConnectionId, { readonly chunks: Uint8Array[]; bytes: number }>();
  #bytes = 0;

  constructor(options: PartialFramesOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the frame with its last part. Also returns a frame that is too large, which its receiver refuses. */
  receivePart(connection: ConnectionId, part: Uint8Array, isLast: boolean): Uint8Array | undefined {
    const partial = this.#parts.get(connection) ?? { chunks: [], bytes: 0 };
    this.#parts.set(connection, partial);
    partial.chunks.push(part.slice());
    partial.bytes += part.byteLength;
    this.#bytes += part.byteLength;
    if (!isLast && partial.bytes <= this.#options.frameBytesMax) return undefined;
    this.forget(connection);
    return joinBytes(partial.chunks, partial.bytes);
  }

  /** Returns and forgets the connections whose unfinished frames exceed the limit, the oldest first. */
  takeExcess(): readonly ConnectionId[] {
    const excess: ConnectionId[] = [];
    for (const connection of this.#parts.keys()) {
      if (this.#bytes <= this.#options.partialBytesMax) break;
      this.forget(connection);
      excess.push(connection);
    }
    return excess;
  }

  forget(connection: ConnectionId): void {
    this.#bytes -= this.#parts.get(connection)?.bytes ?? 0;
    this.#parts.delete(connection);
  }
}
