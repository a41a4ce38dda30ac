/** What the bridge needs from its sockets, and they from it. */

import type { ClientAddress } from "../shared/client-address.ts";
import type { RoomId } from "../shared/ids.ts";

/** One client's WebSocket. */
export interface YSocket {
  send(bytes: Uint8Array): void;
  close(code: number, reason: string): void;
  /** Sent and not yet taken by the client. */
  readonly waitingBytes: number;
}

/** Who wants to come in, and where to. */
export type YSeat = {
  readonly room: RoomId;
  readonly token: string;
  /** The client's, as the gateway is told it. */
  readonly address: string;
  /** Under which the client is counted, here as on the gateway. Undefined: it is on this machine. */
  readonly place: ClientAddress | undefined;
};

export type TurnedAway = "full" | "address" | "origin" | "request" | "stopping";

/** Hears one client's socket. */
export type YListener = {
  /** So much has come; the messages that it makes whole follow. False: no more is to be read, the socket is being closed. */
  receiveBytes(count: number): boolean;
  receive(bytes: Uint8Array): void;
  receiveClosed(): void;
};

/** Asked about each client before its socket is taken. */
export interface YDoor {
  /** Undefined: it may. */
  mayEnter(seat: YSeat): TurnedAway | undefined;
  enter(seat: YSeat, socket: YSocket): YListener;
  receiveTurnedAway(reason: TurnedAway): void;
  /** A client said more at once than it may, and is closed for it. */
  receiveTooLarge(): void;
}
