/**
 * The floor for presence: uWebSockets.js alone, nothing durable. `naive` forwards every state to all members on
 * arrival. `tick` keeps the newest state of each participant and sends all changes as one frame every 50 ms. An edit
 * gets the next seq and is sent to all members at once.
 */

import * as encoding from "lib0/encoding";
import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import type { ClientId, Epoch, Seq, UserId } from "../../shared/ids.ts";
import { decodeFrame, encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { type CommittedEdit, type Frame, type ServerFrame } from "../../shared/wire/frames.ts";
import type { ParticipantEntry, PresenceField, PresenceDelta } from "../../shared/wire/presence.ts";
import { loadUws } from "../../gateway/io/sockets/load-uws.ts";
import { listen, welcome } from "./gateway.ts";

type Connection = { number: number; room: BareRoom | undefined };
type BareRoom = {
  readonly channel: number;
  readonly participants: Map<number, ParticipantEntry>;
  head: number;
  /** Since the last tick. */
  joined: ParticipantEntry[];
  readonly changed: Map<number, readonly PresenceField[]>;
};

const TICK_MS = 50;
const EPOCH = 1 as Epoch;
const EMPTY_DELTA: PresenceDelta = { snapshot: false, present: [], gone: [], states: [] };

export async function startPresenceServer(kind: "naive" | "tick", port: number): Promise<void> {
  const app = loadUws().App();
  const rooms = new Map<string, BareRoom>();
  let turn: { readonly room: BareRoom; readonly frame: Uint8Array }[] = [];

  app.ws<Connection>("/*", {
    maxBackpressure: 64 * 1024 ** 2,
    open: (ws) => void Object.assign(ws.getUserData(), { number: 0, room: undefined }),
    message: (ws, message) => {
      const frame = decodeFrame(new Uint8Array(message));
      switch (frame?.type) {
        case "hello":
          return send(ws, welcome("peer"));
        case "join":
          return join(ws, frame);
        case "presence":
          return receivePresence(
            ws.getUserData(),
            frame.fields.map(({ name, value }) => ({ name, value: value.slice() })),
          );
        case "edit":
          return receiveEdit(ws.getUserData(), frame);
        case "ping":
          return; // The open socket shows that the participant is present.
        default:
          ws.end();
      }
    },
  });
  await listen(app, port);
  setInterval(endTick, TICK_MS);

  function join(ws: WebSocket<Connection>, { request, room: id }: Frame & { type: "join" }): void {
    const room: BareRoom = rooms.get(id) ?? { channel: rooms.size + 1, participants: new Map(), head: 0, joined: [], changed: new Map() };
    rooms.set(id, room);
    const { channel, participants, head } = room;
    const number = participants.size + 1;
    Object.assign(ws.getUserData(), { number, room });
    const participant: ParticipantEntry = {
      number,
      client: clientOf(number),
      user: `user-${number}` as UserId,
      name: `user ${number}`,
      canWrite: true,
      spectator: false,
    };
    participants.set(number, participant);
    room.joined.push(participant);
    ws.cork(() => {
      send(ws, {
        type: "joined",
        request,
        channel,
        client: participant.client,
        epoch: EPOCH,
        head: head as Seq,
        rights: { read: true, write: true },
      });
      send(ws, {
        type: "presence-delta",
        channel,
        delta: { ...EMPTY_DELTA, snapshot: true, present: [...participants.values()] },
      });
    });
    ws.subscribe(String(channel));
  }

  function receivePresence({ number, room }: Connection, fields: readonly PresenceField[]): void {
    if (room === undefined) return;
    if (kind === "tick") return void room.changed.set(number, fields);
    const delta = { ...EMPTY_DELTA, states: [{ number, fields }] };
    publishSoon(room, encodeFrame({ type: "presence-delta", channel: room.channel, delta }));
  }

  function receiveEdit({ number, room }: Connection, { counter, parentSeq, payload }: Frame & { type: "edit" }): void {
    if (room === undefined) return;
    room.head += 1;
    const edits: CommittedEdit[] = [{ client: clientOf(number), counter, parentSeq, payload: payload.slice() }];
    publishSoon(
      room,
      encodeCommittedFrame(
        room.channel,
        encoding.encode((out) => writeCommittedEdits(out, { epoch: EPOCH, firstSeq: room.head as Seq, edits })),
      ),
    );
  }

  function endTick(): void {
    for (const room of rooms.values()) {
      const { channel, joined, changed } = room;
      if (joined.length === 0 && changed.size === 0) continue;
      const delta = { ...EMPTY_DELTA, present: joined, states: [...changed].map(([number, fields]) => ({ number, fields })) };
      room.joined = [];
      changed.clear();
      app.publish(String(channel), encodeFrame({ type: "presence-delta", channel, delta }), true);
    }
  }

  /** Publishing inside the message handler is many times slower. */
  function publishSoon(room: BareRoom, frame: Uint8Array): void {
    if (turn.length === 0) {
      setImmediate(() => {
        const frames = turn;
        turn = [];
        for (const one of frames) app.publish(String(one.room.channel), one.frame, true);
      });
    }
    turn.push({ room, frame });
  }
}

function clientOf(number: number): ClientId {
  return `peer-${number}`.padEnd(16, "_") as ClientId;
}

function send(ws: WebSocket<Connection>, frame: ServerFrame): void {
  ws.send(encodeFrame(frame), true);
}
