/**
 * Checks the memory of unfinished frames of one gateway (WIRE54). It counts the parts that arrive, apart from the
 * gateway's own count. After each message they must be within the limit, and only the connection with the oldest
 * unfinished frame may be ended for them, only above the limit.
 */

import type { Clients, ConnectionId, Sockets } from "../../gateway/ports.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import { PART_BYTES_MIN } from "../../shared/wire/parts.ts";
import type { Judge } from "./judge.ts";

export class UnfinishedFrames {
  readonly #judge: Judge;
  readonly #gateway: string;
  readonly #bytesMax: number;
  /** Bytes by connection, the oldest frame first. */
  readonly #frames = new Map<ConnectionId, number>();

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
        clients.receiveDisconnection(connection);
      },
    };
  }

  watchSockets(sockets: Sockets): Sockets {
    return {
      ...sockets,
      close: (connection, close) => {
        const [oldest] = this.#frames.keys();
        const isRight = connection === oldest && this.#bytes() > this.#bytesMax;
        if (close === "overloaded" && this.#frames.has(connection) && !isRight) {
          const held = `${this.#bytes()} of ${this.#bytesMax} bytes, the oldest of connection ${oldest}`;
          this.#judge.fail(`${this.#gateway} ends connection ${connection} with an unfinished frame: all such frames have ${held}`);
        }
        this.#frames.delete(connection);
        sockets.close(connection, close);
      },
    };
  }

  #receiveMessage(connection: ConnectionId, message: Uint8Array): void {
    const part = decodeFrame(message);
    if (part?.type !== "part") return;
    if (part.flags.last) this.#frames.delete(connection);
    else if (part.payload.byteLength >= PART_BYTES_MIN)
      this.#frames.set(connection, (this.#frames.get(connection) ?? 0) + part.payload.byteLength);
  }

  #bytes(): number {
    return [...this.#frames.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}
