import { beforeEach, expect, test } from "vitest";

import { type ClientId, type Epoch, type GatewayId, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";
import { CatchUpQuestions, requestNumbers } from "./catch-up-questions.ts";
import { Entrance } from "./entrance.ts";
import { MemberConnections } from "./members.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";
import { UnackedBudget } from "./unacked-budget.ts";
import { Unacked } from "./edit-relay.ts";

const connection = 1 as ConnectionId;
const client = "annannannannann1" as ClientId;
const HEAD: Position = { epoch: 3 as Epoch, seq: 9 as Seq };

let members: MemberConnections;
let entrance: Entrance;
let effects: FollowedRoomEffect[];

beforeEach(() => {
  members = new MemberConnections();
  const unacked = new Unacked(
    { forwardedEditsPerRoomMax: 3, forwardedBytesPerRoomMax: 1e6, forwardedKeptMs: 300_000 },
    new UnackedBudget({ bytesMax: 1e6 }),
  );
  entrance = new Entrance({ joinMsMax: 10_000 }, 7, members, unacked, new CatchUpQuestions("gw" as GatewayId, requestNumbers()));
  entrance.receiveNewEpoch(HEAD.epoch, []);
  effects = [];
});

function join() {
  return entrance.receiveJoin({ kind: "join", connection, client, request: 1, position: START }, 0 as Millis, effects);
}

test("[ETR1] a member that needs a snapshot receives JOINED first, and no edits", () => {
  entrance.sendToSnapshot([join()], "too-old", HEAD, 20 as Millis, effects);
  expect(effects).toEqual([
    { kind: "admit", connection, client, request: 1, epoch: 3, head: 9, waitedMs: 20, toSnapshot: true },
    { kind: "send", to: [connection], frame: { type: "resync-required", channel: 7, reason: "too-old", head: HEAD } },
  ]);
  expect(entrance.isServed(connection)).toBe(false);
});

test("[ETR2] a member that joins while the log is slow is informed of it, and of the recovery while it catches up", () => {
  entrance.receiveSaving("saving", effects);
  expect(effects).toEqual([]); // No member is there.
  const member = entrance.admit(join(), HEAD.seq, 0 as Millis, effects);
  expect(effects.slice(1)).toEqual([{ kind: "send", to: [connection], frame: { type: "saving", channel: 7, state: "saving" } }]);
  entrance.receiveSaving("saved", effects);
  expect(effects.slice(2)).toEqual([{ kind: "send", to: [connection], frame: { type: "saving", channel: 7, state: "saved" } }]);
  entrance.goLive(member, undefined, effects);
  entrance.receiveSaving("saving", effects);
  expect(effects.slice(3)).toEqual([
    { kind: "listen", connection },
    { kind: "publish", frame: { type: "saving", channel: 7, state: "saving" }, except: undefined },
  ]);
});

test("[ETR3] a member that waits too long is rejected, an admitted one is not", () => {
  join();
  entrance.receiveTick("unavailable", 9_999 as Millis, effects);
  expect(effects).toEqual([]);
  entrance.receiveTick("unavailable", 10_000 as Millis, effects);
  expect(effects).toEqual([{ kind: "reject", connection, request: 1, reason: "unavailable" }]);
  expect(members.size).toBe(0);
  entrance.admit(join(), HEAD.seq, 0 as Millis, effects);
  entrance.receiveTick("unavailable", 20_000 as Millis, effects);
  expect(members.size).toBe(1);
});
