import { beforeEach, expect, test } from "vitest";

import { type ClientId, type Epoch, type GatewayId, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";
import { CatchUps } from "./catch-ups.ts";
import { Entrance } from "./entrance.ts";
import { Members } from "./members.ts";
import type { RoomEffect } from "./room-messages.ts";
import { Unacked, UnackedBudget } from "./unacked.ts";

const connection = 1 as ConnectionId;
const client = "annannannannann1" as ClientId;
const HEAD: Position = { epoch: 3 as Epoch, seq: 9 as Seq };

let members: Members;
let entrance: Entrance;
let effects: RoomEffect[];

beforeEach(() => {
  members = new Members();
  const unacked = new Unacked(
    { forwardedEditsPerRoomMax: 3, forwardedBytesPerRoomMax: 1e6, forwardedKeptMs: 300_000 },
    new UnackedBudget({ bytesMax: 1e6 }),
  );
  entrance = new Entrance({ joinMsMax: 10_000 }, 7, members, unacked, new CatchUps("gw" as GatewayId));
  entrance.receiveNewEpoch(HEAD.epoch, []);
  effects = [];
});

function join() {
  return entrance.join({ kind: "join", connection, client, request: 1, position: START }, 0 as Millis, effects);
}

test("[ETR1] who is sent to a snapshot is let in first, and gets no edits", () => {
  entrance.sendToSnapshot([join()], "too-old", HEAD, 20 as Millis, effects);
  expect(effects).toEqual([
    { kind: "let-in", connection, client, request: 1, epoch: 3, head: 9, waitedMs: 20, toSnapshot: true },
    { kind: "send", to: [connection], frame: { type: "resync-required", channel: 7, reason: "too-old", head: HEAD } },
  ]);
  expect(entrance.isServed(connection)).toBe(false);
});

test("[ETR2] who is let in while the room saves slowly is told so, and told when it goes well again on the way to the room", () => {
  entrance.receiveSaving("saving", effects);
  expect(effects).toEqual([]); // Nobody is there.
  const member = entrance.letIn(join(), HEAD.seq, 0 as Millis, effects);
  expect(effects.slice(1)).toEqual([{ kind: "send", to: [connection], frame: { type: "saving", channel: 7, state: "saving" } }]);
  entrance.receiveSaving("saved", effects);
  expect(effects.slice(2)).toEqual([{ kind: "send", to: [connection], frame: { type: "saving", channel: 7, state: "saved" } }]);
  entrance.goLive(member, effects);
  entrance.receiveSaving("saving", effects);
  expect(effects.slice(3)).toEqual([
    { kind: "listen", connection },
    { kind: "publish", frame: { type: "saving", channel: 7, state: "saving" }, except: undefined },
  ]);
});

test("[ETR3] who waits longer than that is turned away, who was let in is not", () => {
  join();
  entrance.receiveTick(9_999 as Millis, effects);
  expect(effects).toEqual([]);
  entrance.receiveTick(10_000 as Millis, effects);
  expect(effects).toEqual([{ kind: "turn-away", connection, request: 1, reason: "unavailable" }]);
  expect(members.size).toBe(0);
  entrance.letIn(join(), HEAD.seq, 0 as Millis, effects);
  entrance.receiveTick(20_000 as Millis, effects);
  expect(members.size).toBe(1);
});
