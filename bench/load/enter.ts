/**
 * One member of one room on its own socket, with little overhead: sends HELLO and JOIN and passes on every decoded
 * frame.
 */

import type { ClientKey, Position, RoomId } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { type ClientFrame, type Frame, PROTOCOL_VERSION, type UnknownFrame } from "../../shared/wire/frames.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";

export type Seat = { readonly gateway: string; readonly token: string; readonly room: string; readonly clientKey: string };

type SeatListener = {
  receive(frame: Frame | UnknownFrame, bytes: number): void;
  /** The server closed the connection. */
  end(reason: string): void;
};

/** Resolves when the socket is open and JOIN is sent. */
export async function enter(seat: Seat, position: Position, listener: SeatListener): Promise<LoadSocket> {
  const socket = await openSocket(new URL(seat.gateway), {
    receiveFrame: (bytes) => {
      const frame = decodeFrame(bytes);
      if (frame === undefined) throw new Error(`a frame cannot be decoded: ${bytes[0]}`);
      listener.receive(frame, bytes.byteLength);
    },
    receiveEnd: (reason) => listener.end(reason),
  });
  sendFrame(socket, { type: "hello", version: PROTOCOL_VERSION, token: seat.token, agent: "bench" });
  join(socket, seat, position);
  return socket;
}

export function join(socket: LoadSocket, { room, clientKey }: Seat, position: Position): void {
  sendFrame(socket, { type: "join", request: 1, room: room as RoomId, clientKey: clientKey as ClientKey, position });
}

export function sendFrame(socket: LoadSocket, frame: ClientFrame): void {
  socket.send(encodeFrame(frame));
}

export function unexpected(seat: Seat, what: string): Error {
  return new Error(`${seat.clientKey} in ${seat.room}: ${what}`);
}
