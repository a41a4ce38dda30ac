/** One socket between a client and the model server, on the test's clock: it delays, is cut, and goes deaf. */

import { assert } from "../../shared/assert.ts";
import type { ClientId, RoomId } from "../../shared/ids.ts";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { Channel, ClientFrame, Limits, ServerFrame } from "../../shared/wire/frames.ts";
import type { Clock, SocketListener } from "../ports.ts";

/** Whoever is joined to a room on the line. */
export type Member = { readonly client: ClientId; readonly room: RoomId; live: boolean };

/** What a line needs of its server. */
export type LineServer = {
  readonly clock: Clock;
  readonly lines: Set<Line>;
  readonly limits: Pick<Limits, "frameBytesMax">;
  delayMs(): number;
  /** Until then nothing of what clients send arrives. */
  readonly stalledUntil: number;
  receive(line: Line, frame: ClientFrame): void;
  receiveGone(line: Line, channel: Channel): void;
};

/** One socket: bytes keep their order in each direction; what is under way when it is cut is lost. */
export class Line {
  readonly members = new Map<Channel, Member>();
  readonly #server: LineServer;
  readonly #listener: SocketListener;
  #state: "opening" | "open" | "deaf" | "closed" = "opening";
  #lastUp = 0;
  #lastDown = 0;

  constructor(server: LineServer, listener: SocketListener) {
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
    clock.after(this.#lastUp - clock.now(), () => {
      const frame = decodeFrame(copy);
      assert(frame !== undefined, "a client sends frames");
      if (this.#state !== "open") return;
      if (copy.byteLength > this.#server.limits.frameBytesMax) return this.cut(CLOSE.frameTooLarge.code);
      this.#server.receive(this, frame as ClientFrame);
    });
  }

  toClient(frame: ServerFrame): void {
    const { clock } = this.#server;
    // Presence draws no chance: a seed's edits meet the same faults with it as without.
    this.#lastDown = Math.max(this.#lastDown, clock.now() + (frame.type === "presence-news" ? 0 : this.#server.delayMs()));
    const bytes = encodeFrame(frame);
    clock.after(this.#lastDown - clock.now(), () => {
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
    this.#server.lines.delete(this);
    for (const channel of this.members.keys()) this.#server.receiveGone(this, channel);
    if (code !== undefined) this.#listener.closed(code);
  }
}
