/**
 * One socket between a client and the model server, on the test's clock: it delays, can be cut, and can lose frames
 * silently.
 */

import { assert } from "../../shared/assert.ts";
import type { ClientId, RoomId, Millis } from "../../shared/ids.ts";
import { TokenBucket } from "../../shared/limits/token-bucket.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { Channel, ClientFrame, Limits, ServerFrame } from "../../shared/wire/frames.ts";
import type { ClientClock, SocketListener } from "../ports.ts";

/** The limits of the model server for a connection. */
export const LIMITS: Limits = {
  pingIntervalMs: 1_000,
  silenceMsMax: 3_000,
  frameBytesMax: 10_000,
  editBytesMax: 5_000,
  editBurst: 30,
  editsPerSecond: 10,
  bytesBurst: 1_000_000,
  bytesPerSecond: 100_000,
  presenceBurst: 60,
  presencePerSecond: 30,
  presenceBytesMax: 8_192,
  presenceFieldsMax: 64,
  controlBurst: 300,
  controlsPerSecond: 20,
};

/** A client that has joined a room on this connection. */
type ModelMember = { readonly client: ClientId; readonly room: RoomId; live: boolean };

/** The part of the server that a connection uses. */
type ModelConnectionServer = {
  readonly clock: ClientClock;
  readonly connections: Set<ModelConnection>;
  readonly limits: Pick<Limits, "frameBytesMax">;
  delayMs(): number;
  /** Until this time no frame of a client arrives. */
  readonly stalledUntil: number;
  receive(connection: ModelConnection, frame: ClientFrame): void;
  receiveGone(connection: ModelConnection, channel: Channel): void;
};

/** One socket. Bytes stay in order in each direction; bytes on the way are lost when it is cut. */
export class ModelConnection {
  readonly members = new Map<Channel, ModelMember>();
  readonly #server: ModelConnectionServer;
  readonly #listener: SocketListener;
  #state: "opening" | "open" | "deaf" | "closed" = "opening";
  #lastUp = 0;
  #lastDown = 0;

  constructor(server: ModelConnectionServer, listener: SocketListener) {
    this.#server = server;
    this.#listener = listener;
  }

  open(): void {
    if (this.#state !== "opening") return;
    this.#state = "open";
    this.#listener.opened();
  }

  fromClient(bytes: Uint8Array): void {
    const { clock } = this.#server;
    this.#lastUp = Math.max(this.#lastUp, clock.now() + this.#server.delayMs(), this.#server.stalledUntil);
    const copy = bytes.slice();
    clock.after(Math.max(0, this.#lastUp - clock.now()), () => {
      const frame = decodeFrame(copy);
      assert(frame !== undefined, "a client sends frames");
      if (this.#state !== "open") return;
      if (copy.byteLength > this.#server.limits.frameBytesMax) return this.cut(CLOSE.frameTooLarge.code);
      this.#server.receive(this, frame as ClientFrame);
    });
  }

  toClient(frame: ServerFrame): void {
    const { clock } = this.#server;
    // Presence draws no random number: with and without presence, a seed's edits meet the same faults.
    this.#lastDown = Math.max(this.#lastDown, clock.now() + (frame.type === "presence-delta" ? 0 : this.#server.delayMs()));
    const bytes = encodeFrame(frame);
    clock.after(Math.max(0, this.#lastDown - clock.now()), () => {
      if (this.#state === "open") this.#listener.received(bytes);
    });
  }

  goDeaf(): void {
    if (this.#state === "open") this.#state = "deaf";
    this.members.clear();
  }

  /** Undefined: the client has closed it. */
  cut(code: number | undefined): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#server.connections.delete(this);
    for (const channel of this.members.keys()) this.#server.receiveGone(this, channel);
    if (code !== undefined) this.#listener.closed(code);
  }
}

type Buckets = { readonly presence: TokenBucket; readonly controls: TokenBucket };

/** The send rates of a connection, for a model server that enforces them like a gateway. Edits are not counted. */
export class ModelRates {
  readonly #buckets = new WeakMap<ModelConnection, Buckets>();

  /** A presence frame over the rate is skipped; any other frame over the rate closes the connection. */
  take(connection: ModelConnection, frame: ClientFrame, limits: Limits, now: Millis): "taken" | "passed-over" | "too-fast" {
    const { presence, controls } = this.#of(connection, limits, now);
    if (frame.type === "edit") return "taken";
    if (frame.type === "presence") return presence.take(now) ? "taken" : "passed-over";
    return controls.take(now) ? "taken" : "too-fast";
  }

  #of(connection: ModelConnection, { presenceBurst, presencePerSecond, controlBurst, controlsPerSecond }: Limits, now: Millis): Buckets {
    const known = this.#buckets.get(connection);
    if (known !== undefined) return known;
    const begun = {
      presence: new TokenBucket({ burst: presenceBurst, perSecond: presencePerSecond }, now),
      controls: new TokenBucket({ burst: controlBurst, perSecond: controlsPerSecond }, now),
    };
    this.#buckets.set(connection, begun);
    return begun;
  }
}
