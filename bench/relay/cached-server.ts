/**
 * The floor for returning clients: uWebSockets.js alone, with every room's edits in memory. It sends the missing edits
 * as one frame, encoded once for all clients with the same position. Nothing is durable.
 */

import * as encoding from "lib0/encoding";
import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import type { ClientId, Epoch, RoomId, Seq } from "../../shared/ids.ts";
import { decodeFrame, encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { type CommittedEdit, type Frame, type ServerFrame } from "../../shared/wire/frames.ts";
import { loadUws } from "../../gateway/io/sockets/load-uws.ts";
import { FRAME_BYTES_MAX, listen, welcome } from "./gateway.ts";

type Room = {
  readonly channel: number;
  readonly edits: CommittedEdit[];
  /** By the seq before the first edit. */ readonly encoded: Map<number, Uint8Array>;
};
type Connection = { client: ClientId; room: Room | undefined };

const EPOCH = 1 as Epoch;

export async function startCachedServer(port: number): Promise<void> {
  const app = loadUws().App();
  const rooms = new Map<RoomId, Room>();
  let connections = 0;

  app.ws<Connection>("/*", {
    maxPayloadLength: FRAME_BYTES_MAX,
    maxBackpressure: 64 * 1024 ** 2,
    open: (ws) => void Object.assign(ws.getUserData(), { client: `cached-${connections++}`.padEnd(16, "_"), room: undefined }),
    message: (ws, message) => {
      const frame = decodeFrame(new Uint8Array(message));
      switch (frame?.type) {
        case "hello":
          return send(ws, welcome(ws.getUserData().client));
        case "join":
          return join(ws, frame);
        case "edit":
          return receiveEdit(ws.getUserData(), frame);
        default:
          ws.end();
      }
    },
  });
  await listen(app, port);

  function join(ws: WebSocket<Connection>, { room: id, request, position }: Frame & { type: "join" }): void {
    const data = ws.getUserData();
    const room = rooms.get(id) ?? { channel: rooms.size + 1, edits: [], encoded: new Map() };
    rooms.set(id, room);
    data.room = room;
    ws.cork(() => {
      send(ws, {
        type: "joined",
        request,
        channel: room.channel,
        client: data.client,
        epoch: EPOCH,
        head: room.edits.length as Seq,
        rights: { read: true, write: true },
      });
      if (position.seq < room.edits.length) ws.send(missed(room, position.seq), true);
      ws.subscribe(String(room.channel));
    });
  }

  function receiveEdit({ client, room }: Connection, { counter, parentSeq, payload }: Frame & { type: "edit" }): void {
    if (room === undefined) return;
    room.edits.push({ client, counter, parentSeq, payload: payload.slice() });
    room.encoded.clear();
    app.publish(String(room.channel), missed(room, room.edits.length - 1), true);
  }
}

function missed({ channel, edits, encoded }: Room, after: number): Uint8Array {
  const known = encoded.get(after);
  if (known !== undefined) return known;
  const bytes = encoding.encode((out) =>
    writeCommittedEdits(out, { epoch: EPOCH, firstSeq: (after + 1) as Seq, edits: edits.slice(after) }),
  );
  const frame = encodeCommittedFrame(channel, bytes);
  encoded.set(after, frame);
  return frame;
}

function send(ws: WebSocket<Connection>, frame: ServerFrame): void {
  ws.send(encodeFrame(frame), true);
}
