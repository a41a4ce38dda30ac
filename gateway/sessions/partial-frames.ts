/**
 * Joins the parts of frames (WIRE54). All unfinished frames of a gateway share one limit. Above it the connection with
 * the oldest unfinished frame is closed: an honest client sends the parts of a frame without a pause, so its unfinished
 * frame is never old.
 */

import { joinBytes } from "../../shared/collections/bytes.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import type { ConnectionId } from "../ports.ts";

export type PartialFramesOptions = {
  readonly messageBytesMax: number;
  readonly frameBytesMax: number;
  readonly partialBytesMax: number;
};

/** Parts may make a larger frame than a message. */
export type FrameSource = "message" | "parts";

export class PartialFrames {
  readonly #options: PartialFramesOptions;
  /** At most one unfinished frame per connection, the oldest first. */
  readonly #frames = new Map<ConnectionId, { readonly chunks: Uint8Array[]; bytes: number }>();
  #bytes = 0;

  constructor(options: PartialFramesOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * `message`: of type PART, valid during the call only. Returns what the session receives. With its last part that is
   * the frame. A frame that is too large and an invalid part are returned too, because the session refuses them.
   */
  receivePart(connection: ConnectionId, message: Uint8Array): { readonly bytes: Uint8Array; readonly cameIn: FrameSource } | undefined {
    const part = message.byteLength > this.#options.messageBytesMax ? undefined : decodeFrame(message);
    if (part?.type !== "part") return { bytes: message, cameIn: "message" };
    const { payload, flags } = part;
    if (!flags.last && payload.byteLength < PART_BYTES_MIN) return { bytes: message, cameIn: "message" };
    const frame = this.#frames.get(connection) ?? { chunks: [], bytes: 0 };
    this.#frames.set(connection, frame);
    frame.chunks.push(payload.slice());
    frame.bytes += payload.byteLength;
    this.#bytes += payload.byteLength;
    if (!flags.last && frame.bytes <= this.#options.frameBytesMax) return undefined;
    this.forget(connection);
    return { bytes: joinBytes(frame.chunks, frame.bytes), cameIn: "parts" };
  }

  /** Returns and forgets the connections whose unfinished frames exceed the limit, the oldest first. */
  takeExcess(): readonly ConnectionId[] {
    const excess: ConnectionId[] = [];
    for (const connection of this.#frames.keys()) {
      if (this.#bytes <= this.#options.partialBytesMax) break;
      this.forget(connection);
      excess.push(connection);
    }
    return excess;
  }

  forget(connection: ConnectionId): void {
    this.#bytes -= this.#frames.get(connection)?.bytes ?? 0;
    this.#frames.delete(connection);
  }
}
