/** Ports between the bridge and its sockets. */

import type { ClientAddress } from "../shared/limits/client-address.ts";
import type { RoomId } from "../shared/ids.ts";

/** One client's WebSocket. */
export interface YSocket {
  send(bytes: Uint8Array): void;
  close(code: number, reason: string): void;
  /** Bytes sent and not yet read by the client. */
  readonly waitingBytes: number;
}

/** Reports an incident to the operator: its facts, and one sentence. */
export type YWarn = (facts: object, sentence: string) => void;

/** The room, token and address of a client that connects. */
export type YSeat = {
  readonly room: RoomId;
  readonly token: string;
  /** The client's address, as passed on to the gateway. */
  readonly address: string;
  /** The address under which the client is counted. Undefined: the client is on this machine. */
  readonly place: ClientAddress | undefined;
};

export type YRejection = "full" | "address" | "origin" | "request" | "stopping";

/** Receives the events of one client's socket. */
export type YListener = {
  /** Bytes have arrived; complete messages follow. False: read no more, the socket is being closed. */
  receiveBytes(count: number): boolean;
  receiveMessage(bytes: Uint8Array): void;
  receiveClosed(): void;
};

/** Decides about each client before its socket is accepted. */
export interface YClientAdmission {
  /** Undefined: the client may enter. */
  mayEnter(seat: YSeat): YRejection | undefined;
  enter(seat: YSeat, socket: YSocket): YListener;
  receiveRejected(reason: YRejection): void;
  /** A client was closed because its message was too large. */
  receiveTooLarge(): void;
}
