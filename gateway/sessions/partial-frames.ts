/**
 * Joins the parts of frames (WIRE54). All unfinished frames of a gateway share one limit. Above it, the tenant with the
 * most unfinished bytes is chosen, in it the user with the most, and the connection with this user's oldest frame is
 * closed. If the oldest frame of all were chosen, a flood of other tenants would end an honest client's frame, which takes
 * seconds on a slow uplink.
 */

import { joinBytes } from "../../shared/collections/bytes.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import type { ConnectionId } from "../ports.ts";
import type { Identity } from "./identity.ts";

export type PartialFramesOptions = {
  readonly messageBytesMax: number;
  readonly frameBytesMax: number;
  readonly partialBytesMax: number;
};

/** Parts may make a larger frame than a message. */
export type FrameSource = "message" | "parts";

type Sender = Pick<Identity, "tenant" | "user">;
type PartialFrame = { readonly chunks: Uint8Array[]; readonly sender: Sender; bytes: number };

export class PartialFrames {
  readonly #options: PartialFramesOptions;
  /** At most one unfinished frame per connection, the oldest first. */
  readonly #frames = new Map<ConnectionId, PartialFrame>();
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
  receivePart(
    connection: ConnectionId,
    message: Uint8Array,
    sender: Sender,
  ): { readonly bytes: Uint8Array; readonly cameIn: FrameSource } | undefined {
    const part = message.byteLength > this.#options.messageBytesMax ? undefined : decodeFrame(message);
    if (part?.type !== "part") return { bytes: message, cameIn: "message" };
    const { payload, flags } = part;
    if (!flags.last && payload.byteLength < PART_BYTES_MIN) return { bytes: message, cameIn: "message" };
    const frame = this.#frames.get(connection) ?? { chunks: [], sender, bytes: 0 };
    this.#frames.set(connection, frame);
    frame.chunks.push(payload.slice());
    frame.bytes += payload.byteLength;
    this.#bytes += payload.byteLength;
    if (!flags.last && frame.bytes <= this.#options.frameBytesMax) return undefined;
    this.forget(connection);
    return { bytes: joinBytes(frame.chunks, frame.bytes), cameIn: "parts" };
  }

  /** Returns and forgets the connections whose unfinished frames exceed the limit. */
  takeExcess(): readonly ConnectionId[] {
    const excess: ConnectionId[] = [];
    while (this.#bytes > this.#options.partialBytesMax) {
      const [connection] = ofHeaviest(ofHeaviest([...this.#frames], "tenant"), "user")[0]!;
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

type Entry = readonly [ConnectionId, PartialFrame];

/** The frames of the tenant, or user, with the most bytes, in the same order. */
function ofHeaviest(entries: readonly Entry[], by: keyof Sender): readonly Entry[] {
  const bytesOf = new Map<string, number>();
  for (const [, { sender, bytes }] of entries) bytesOf.set(sender[by], (bytesOf.get(sender[by]) ?? 0) + bytes);
  const most = Math.max(...bytesOf.values());
  const heaviest = entries.find(([, { sender }]) => bytesOf.get(sender[by]) === most)![1].sender[by];
  return entries.filter(([, { sender }]) => sender[by] === heaviest);
}
