/**
 * Joins the parts of frames (WIRE54). All unfinished frames of a gateway share one limit. Above it, the tenant with the
 * most unfinished bytes is chosen, in it the user with the most, and the connection with this user's oldest frame is
 * closed. If the oldest frame of all were chosen, a flood of other tenants would end an honest client's frame, which takes
 * seconds on a slow uplink.
 */

import { assert } from "../../shared/assert.ts";
import { joinBytes } from "../../shared/collections/bytes.ts";
import type { TenantId, UserId } from "../../shared/ids.ts";
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
/** `connections`: those with an unfinished frame, the oldest frame first. */
type UserShare = { bytes: number; readonly connections: Set<ConnectionId> };
type TenantShare = { bytes: number; readonly users: Map<UserId, UserShare> };

export class PartialFrames {
  readonly #options: PartialFramesOptions;
  /** At most one unfinished frame per connection. */
  readonly #frames = new Map<ConnectionId, PartialFrame>();
  /** Counted with each part: above the limit, each further part would otherwise cost a look at every frame. */
  readonly #shares = new Map<TenantId, TenantShare>();
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
    this.#count(connection, frame.sender, payload.byteLength);
    if (!flags.last && frame.bytes <= this.#options.frameBytesMax) return undefined;
    this.forget(connection);
    return { bytes: joinBytes(frame.chunks, frame.bytes), cameIn: "parts" };
  }

  /** Returns and forgets the connections whose unfinished frames exceed the limit. */
  takeExcess(): readonly ConnectionId[] {
    const excess: ConnectionId[] = [];
    while (this.#bytes > this.#options.partialBytesMax) {
      const [connection] = heaviest(heaviest(this.#shares.values()).users.values()).connections;
      assert(connection !== undefined, "a user without an unfinished frame has no share");
      this.forget(connection);
      excess.push(connection);
    }
    return excess;
  }

  forget(connection: ConnectionId): void {
    const frame = this.#frames.get(connection);
    if (frame === undefined) return;
    const { tenant, user } = frame.sender;
    this.#count(connection, frame.sender, -frame.bytes);
    this.#frames.delete(connection);
    const { users } = this.#shares.get(tenant)!;
    const { connections } = users.get(user)!;
    connections.delete(connection);
    if (connections.size === 0) users.delete(user);
    if (users.size === 0) this.#shares.delete(tenant);
  }

  #count(connection: ConnectionId, { tenant, user }: Sender, bytes: number): void {
    const ofTenant = this.#shares.get(tenant) ?? { bytes: 0, users: new Map<UserId, UserShare>() };
    const ofUser = ofTenant.users.get(user) ?? { bytes: 0, connections: new Set<ConnectionId>() };
    this.#shares.set(tenant, ofTenant);
    ofTenant.users.set(user, ofUser);
    ofUser.connections.add(connection);
    ofUser.bytes += bytes;
    ofTenant.bytes += bytes;
    this.#bytes += bytes;
  }
}

/** The share with the most bytes; the first one of several. There is at least one. */
function heaviest<Share extends { readonly bytes: number }>(shares: Iterable<Share>): Share {
  let most: Share | undefined;
  for (const share of shares) if (most === undefined || share.bytes > most.bytes) most = share;
  assert(most !== undefined, "unfinished frames belong to a tenant and a user");
  return most;
}
