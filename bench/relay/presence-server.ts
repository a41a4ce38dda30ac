/**
 * The floor for presence: uWebSockets.js alone, one room, nothing durable. `naive` forwards every state to everybody on
 * arrival. `tick` keeps the newest state of each participant and sends all changes as one frame every 50 ms. An edit
 * gets the next seq and goes to everybody at once.
 */

import * as encoding from "lib0/encoding";
import type { WebSocket } from "uWebSockets.js-glibc-2.36";

import { loadUws } from "../../gateway/io/sockets/load-uws.ts";
import type { ClientId, Epoch, Seq, UserId } from "../../shared/ids.ts";
import { decodeFrame, encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { type CommittedEdit, type Frame, PROTOCOL_VERSION, type ServerFrame } from "../../shared/wire/frames.ts";
import type { ParticipantEntry, PresenceField, PresenceDelta } from "../../shared/wire/presence.ts";
import { LIMITS, listen } from "./gateway.ts";

type Connection = { number: number };

const TICK_MS = 50;
const CHANNEL = 1;
const EPOCH = 1 as Epoch;
const TOPIC = "room";
const EMPTY_DELTA: PresenceDelta = { snapshot: false, present: [], gone: [], states: [] };

export async function startPresenceServer(kind: "naive" | "tick", port: number): Promise<void> {
  const app = loadUws().App();
  const participants = new Map<number, ParticipantEntry>();
  let head = 0;
  /** Since the last tick. */
  let joined: ParticipantEntry[] = [];
  const changed = new Map<number, readonly PresenceField[]>();
  let turn: Uint8Array[] = [];

  app.ws<Connection>("/*", {
    maxBackpressure: 64 * 1024 ** 2,
    open: (ws) => void (ws.getUserData().number = participants.size + 1),
    message: (ws, message) => {
      const frame = decodeFrame(new Uint8Array(message));
      switch (frame?.type) {
        case "hello":
          return send(ws, { type: "welcome", version: PROTOCOL_VERSION, connection: "peer", limits: LIMITS, tokenExpiresInMs: 3_600_000 });
        case "join":
          return join(ws, frame);
        case "presence":
          return receivePresence(
            ws.getUserData().number,
            frame.fields.map(({ name, value }) => ({ name, value: value.slice() })),
          );
        case "edit":
          return receiveEdit(ws.getUserData().number, frame);
        case "ping":
          return; // The open socket shows that the participant is present.
        default:
          ws.end();
      }
    },
  });
  await listen(app, port);
  setInterval(endTick, TICK_MS);

  function join(ws: WebSocket<Connection>, { request }: Frame & { type: "join" }): void {
    const number = participants.size + 1;
    ws.getUserData().number = number;
    const participant: ParticipantEntry = {
      number,
      client: clientOf(number),
      user: `user-${number}` as UserId,
      name: `user ${number}`,
      canWrite: true,
      spectator: false,
    };
    participants.set(number, participant);
    joined.push(participant);
    ws.cork(() => {
      send(ws, {
        type: "joined",
        request,
        channel: CHANNEL,
        client: participant.client,
        epoch: EPOCH,
        head: head as Seq,
        rights: { read: true, write: true },
      });
      send(ws, {
        type: "presence-delta",
        channel: CHANNEL,
        delta: { ...EMPTY_DELTA, snapshot: true, present: [...participants.values()] },
      });
    });
    ws.subscribe(TOPIC);
  }

  function receivePresence(number: number, fields: readonly PresenceField[]): void {
    if (kind === "tick") return void changed.set(number, fields);
    publishSoon(encodeFrame({ type: "presence-delta", channel: CHANNEL, delta: { ...EMPTY_DELTA, states: [{ number, fields }] } }));
  }

  function receiveEdit(number: number, { counter, parentSeq, payload }: Frame & { type: "edit" }): void {
    head += 1;
    const edits: CommittedEdit[] = [{ client: clientOf(number), counter, parentSeq, payload: payload.slice() }];
    publishSoon(
      encodeCommittedFrame(
        CHANNEL,
        encoding.encode((out) => writeCommittedEdits(out, { epoch: EPOCH, firstSeq: head as Seq, edits })),
      ),
    );
  }

  function endTick(): void {
    if (joined.length === 0 && changed.size === 0) return;
    const delta: PresenceDelta = { ...EMPTY_DELTA, present: joined, states: [...changed].map(([number, fields]) => ({ number, fields })) };
    joined = [];
    changed.clear();
    app.publish(TOPIC, encodeFrame({ type: "presence-delta", channel: CHANNEL, delta }), true);
  }

  /** Publishing inside the message handler is many times slower. */
  function publishSoon(frame: Uint8Array): void {
    if (turn.length === 0) {
      setImmediate(() => {
        const frames = turn;
        turn = [];
        for (const one of frames) app.publish(TOPIC, one, true);
      });
    }
    turn.push(frame);
  }
}

function clientOf(number: number): ClientId {
  return `peer-${number}`.padEnd(16, "_") as ClientId;
}

function send(ws: WebSocket<Connection>, frame: ServerFrame): void {
  ws.send(encodeFrame(frame), true);
}
