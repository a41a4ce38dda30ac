/** One member of one room on a socket of its own, as lean as the socket: says hello, joins, and hands on every frame, decoded. */

import type { ClientKey, Position, RoomId } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { type ClientFrame, type Frame, PROTOCOL_VERSION, type UnknownFrame } from "../../shared/wire/frames.ts";
import { type LoadSocket, openSocket } from "./web-socket.ts";

export type Seat = { readonly gateway: string; readonly token: string; readonly room: string; readonly clientKey: string };

export type SeatListener = {
  receive(frame: Frame | UnknownFrame, bytes: number): void;
  /** The server ended it. */
  end(reason: string): void;
};

/** Resolves once the socket is open; JOIN is on its way then. */
export async function enter(seat: Seat, position: Position, listener: SeatListener): Promise<LoadSocket> {
  const socket = await openSocket(new URL(seat.gateway), {
    receiveFrame: (bytes) => {
      const frame = decodeFrame(bytes);
      if (frame === undefined) throw new Error(`a frame that does not decode: ${bytes[0]}`);
      listener.receive(frame, bytes.byteLength);
    },
    receiveEnd: (reason) => listener.end(reason),
  });
  say(socket, { type: "hello", version: PROTOCOL_VERSION, token: seat.token, agent: "bench" });
  join(socket, seat, position);
  return socket;
}

export function join(socket: LoadSocket, { room, clientKey }: Seat, position: Position): void {
  say(socket, { type: "join", request: 1, room: room as RoomId, clientKey: clientKey as ClientKey, position });
}

export function say(socket: LoadSocket, frame: ClientFrame): void {
  socket.send(encodeFrame(frame));
}

export function unexpected(seat: Seat, what: string): Error {
  return new Error(`${seat.clientKey} in ${seat.room}: ${what}`);
}
