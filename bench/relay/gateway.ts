/**
 * The gateway of the relay. It accepts Coroom's own frames, so that one load generator works for both systems, and
 * forwards them. It accepts every token, detects no repeated edit and repairs no gap.
 */

import * as encoding from "lib0/encoding";
import type { TemplatedApp, WebSocket } from "uWebSockets.js-glibc-2.36";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import { type ClientId, type Epoch, type GatewayId, type RoomKey, roomKey, type Seq, type TenantId } from "../../shared/ids.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { decodeFrame, encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { type Frame, PROTOCOL_VERSION, type ServerFrame } from "../../shared/wire/frames.ts";
import { loadUws } from "../../gateway/io/sockets/load-uws.ts";

type Connection = { client: ClientId; number: number; room: RoomKey | undefined };

const TENANT = "default" as TenantId;
export const FRAME_BYTES_MAX = 1e6;
const LIMITS = {
  pingIntervalMs: 30_000,
  silenceMsMax: 75_000,
  frameBytesMax: FRAME_BYTES_MAX,
  editBytesMax: 1e6,
  editBurst: 1e6,
  editsPerSecond: 1e6,
  bytesBurst: 1e9,
  bytesPerSecond: 1e9,
  presenceBurst: 1e6,
  presencePerSecond: 1e6,
  presenceBytesMax: 8_192,
  presenceFieldsMax: 64,
  controlBurst: 1e6,
  controlsPerSecond: 1e6,
};

/** For all servers of the relay: limits that no client of a benchmark reaches. */
export function welcome(connection: string): ServerFrame {
  return { type: "welcome", version: PROTOCOL_VERSION, connection, limits: LIMITS, tokenExpiresInMs: 3_600_000 };
}

export async function startRelayGateway(options: {
  natsUrl: string;
  environment: string;
  gateway: GatewayId;
  port: number;
}): Promise<void> {
  const nats = await connectNats({ servers: options.natsUrl, name: options.gateway });
  const subjects = subjectsOf(options.environment);
  const app = loadUws().App();
  const channels = new Map<RoomKey, number>();
  const turn = new Map<RoomKey, encoding.Encoder>();
  let connections = 0;

  app.ws<Connection>("/*", {
    open: (ws) => {
      const data = ws.getUserData();
      data.number = connections + 1;
      data.client = `${options.gateway}-${connections++}`.padEnd(16, "_") as ClientId;
      data.room = undefined;
    },
    message: (ws, message) => receiveFrame(ws, decodeFrame(new Uint8Array(message))),
  });
  await listen(app, options.port);

  function receiveFrame(ws: WebSocket<Connection>, frame: ReturnType<typeof decodeFrame>): void {
    switch (frame?.type) {
      case "edit":
        return receiveEdit(ws, frame);
      case "presence":
        return receivePresence(ws.getUserData(), frame);
      case "hello":
        return send(ws, welcome(ws.getUserData().client));
      case "join":
        return join(ws, frame);
      case "ping":
        return send(ws, { type: "pong", nonce: frame.nonce });
      default:
        ws.end();
    }
  }

  /** Edits of one room from one turn of the event loop are published together. */
  function receiveEdit(ws: WebSocket<Connection>, { counter, parentSeq, payload }: Frame & { type: "edit" }): void {
    const { client, room } = ws.getUserData();
    if (room === undefined) return void ws.end();
    if (turn.size === 0) setImmediate(endTurn);
    const message = turn.get(room) ?? encoding.createEncoder();
    turn.set(room, message);
    encoding.writeVarString(message, client);
    encoding.writeVarUint(message, counter);
    encoding.writeVarUint(message, parentSeq);
    encoding.writeVarUint8Array(message, payload);
  }

  function endTurn(): void {
    for (const [room, message] of turn) nats.publish(subjects.toOwner(room), encoding.toUint8Array(message));
    turn.clear();
  }

  /** Every state goes to every gateway on arrival, as a delta. */
  function receivePresence({ number, room }: Connection, { fields }: Frame & { type: "presence" }): void {
    if (room === undefined) return;
    const delta = { snapshot: false, present: [], gone: [], states: [{ number, fields }] };
    nats.publish(presenceSubject(room), encodeFrame({ type: "presence-delta", channel: channels.get(room)!, delta }));
  }

  function join(ws: WebSocket<Connection>, frame: Frame & { type: "join" }): void {
    const data = ws.getUserData();
    const room = roomKey(TENANT, frame.room);
    const channel = channels.get(room) ?? channels.size + 1;
    if (!channels.has(room)) {
      channels.set(room, channel);
      followRoom(app, nats, subjects.editsOut(room), room, channel);
      nats.subscribe(presenceSubject(room), { callback: (_, message) => void app.publish(room, message.data, true) });
    }
    data.room = room;
    ws.subscribe(room);
    // A new member receives only later edits. The load joins before it writes.
    void nats.flush().then(() =>
      send(ws, {
        type: "joined",
        request: frame.request,
        channel,
        client: data.client,
        epoch: 1 as Epoch,
        head: 0 as Seq,
        rights: { read: true, write: true },
      }),
    );
  }
}

/** All gateways of a relay use the same room numbers only if there is one gateway. More than one is never measured with presence. */
function presenceSubject(room: RoomKey): string {
  return `relay.presence.${room}`;
}

/** Forwards every stored record to every member. The author finds its own edit in it, which is the ack. */
function followRoom(app: TemplatedApp, nats: NatsConnection, subject: string, room: RoomKey, channel: number): void {
  nats.subscribe(subject, { callback: (_, message) => void app.publish(room, encodeCommittedFrame(channel, message.data), true) });
}

function send(ws: WebSocket<Connection>, frame: ServerFrame): void {
  ws.send(encodeFrame(frame), true);
}

export function listen(app: TemplatedApp, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    app.listen("127.0.0.1", port, (socket) => (socket === false ? reject(new Error(`port ${port} is taken`)) : resolve()));
  });
}
