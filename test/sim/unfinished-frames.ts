/**
 * Checks the memory of unfinished frames of one gateway (WIRE54). It counts the parts that arrive, apart from the
 * gateway's own count. After each message they must be within the limit. Only above the limit may a connection be ended for
 * them: the one with the oldest unfinished frame of the user that has the most bytes (ADR 82). A run has one tenant.
 */

import type { Clients, ConnectionId, Sockets } from "../../gateway/ports.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import type { Judge } from "./judge.ts";
import { userOf } from "./tokens.ts";

export class UnfinishedFrames {
  readonly #judge: Judge;
  readonly #gateway: string;
  readonly #bytesMax: number;
  /** Bytes by connection, the oldest frame first. */
  readonly #frames = new Map<ConnectionId, number>();
  readonly #users = new Map<ConnectionId, string>();

  constructor(judge: Judge, gateway: string, bytesMax: number) {
    this.#judge = judge;
    this.#gateway = gateway;
    this.#bytesMax = bytesMax;
  }

  watchClients(clients: Clients): Clients {
    return {
      receiveConnection: (connection, address) => clients.receiveConnection(connection, address),
      receiveReadProgress: (connection, progress) => clients.receiveReadProgress(connection, progress),
      receiveFrame: (connection, bytes) => {
        this.#receiveMessage(connection, bytes);
        clients.receiveFrame(connection, bytes);
        if (this.#bytes() > this.#bytesMax)
          this.#judge.fail(`${this.#gateway} holds ${this.#bytes()} bytes of unfinished frames, and may hold ${this.#bytesMax}`);
      },
      receiveDisconnection: (connection) => {
        this.#frames.delete(connection);
        this.#users.delete(connection);
        clients.receiveDisconnection(connection);
      },
    };
  }

  watchSockets(sockets: Sockets): Sockets {
    return {
      ...sockets,
      close: (connection, close) => {
        const isRight = this.#bytes() > this.#bytesMax && this.#isOldestOfHeaviest(connection);
        if (close === "overloaded" && this.#frames.has(connection) && !isRight) {
          const held = [...this.#frames].map(([holder, bytes]) => `${bytes} of ${this.#users.get(holder)} on ${holder}`).join(", ");
          this.#judge.fail(
            `${this.#gateway} ends connection ${connection} with an unfinished frame. Limit ${this.#bytesMax}, held: ${held}`,
          );
        }
        this.#frames.delete(connection);
        sockets.close(connection, close);
      },
    };
  }

  #receiveMessage(connection: ConnectionId, message: Uint8Array): void {
    const frame = decodeFrame(message);
    if (frame?.type === "hello") this.#users.set(connection, userOf(frame.token));
    if (frame?.type !== "part") return;
    if (frame.flags.last) this.#frames.delete(connection);
    else if (frame.payload.byteLength >= PART_BYTES_MIN)
      this.#frames.set(connection, (this.#frames.get(connection) ?? 0) + frame.payload.byteLength);
  }

  #isOldestOfHeaviest(connection: ConnectionId): boolean {
    const user = this.#users.get(connection);
    const ofUser = [...this.#frames.keys()].filter((holder) => this.#users.get(holder) === user);
    const isHeaviest = [...this.#users.values()].every((other) => this.#bytes(other) <= this.#bytes(user));
    return connection === ofUser[0] && isHeaviest;
  }

  /** Of one user, or of all. */
  #bytes(user?: string): number {
    const counted = [...this.#frames].filter(([holder]) => user === undefined || this.#users.get(holder) === user);
    return counted.reduce((sum, [, bytes]) => sum + bytes, 0);
  }
}
