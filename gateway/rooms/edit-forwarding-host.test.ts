import { expect, test } from "vitest";

import type { ToOwner } from "../../shared/bus/envelope.ts";
import { type ClientId, type RoomKey, roomKey, type RoomId, type Seq, type TenantId, type UserId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { followedRooms } from "../testing/followed-rooms.ts";

const room = (name: string): RoomKey => roomKey("default" as TenantId, name as RoomId);
const HOT = room("hot");
const CALM = room("calm");
const author = { user: "ada" as UserId, client: "AAAAAAAAAAAAAAAA" as ClientId };

const FLAGS = { forwardsPerSecond: "25", roomForwardsPerSecondMin: "25" };

/** A gateway's rooms, and the counters of the edits in each message to an owner. */
function rig(log: Log = SILENT_LOG) {
  const clock = new FakeClock();
  const sent: (readonly [room: RoomKey, counters: readonly number[]])[] = [];
  const sendToOwner = (to: RoomKey, message: ToOwner): void => {
    if (message.kind === "edits") sent.push([to, message.edits.map(({ counter }) => counter)]);
  };
  const { rooms, registry, endTurn } = followedRooms(FLAGS, { clock, log, sendToOwner });
  const counters = new Map<RoomKey, number>();
  return {
    rooms,
    sent,
    clock,
    endTurn,
    write: (to: RoomKey) => {
      const counter = (counters.get(to) ?? 0) + 1;
      counters.set(to, counter);
      rooms.receiveWrite(to, { author, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) });
    },
    gathered: async () => (await registry.getSingleMetric("coroom_gateway_forwards_gathered_total")!.get()).values[0]!.value,
  };
}

/** One edit in each turn, until the room has no credit. */
async function spendCredit({ write, endTurn, sent }: ReturnType<typeof rig>): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    write(HOT);
    await Promise.resolve(); // The room is followed after the first edit.
    endTurn();
  }
  expect(sent.map(([, edits]) => edits)).toEqual([[1], [2], [3], [4], [5], [6], [7], [8], [9], [10]]);
  sent.length = 0;
}

test("[FWH1] a room over its share gathers its edits in order in one message; another room is sent at once", async () => {
  const gateway = rig();
  await spendCredit(gateway);
  const { write, endTurn, sent, clock } = gateway;
  for (const to of [HOT, CALM, HOT]) {
    write(to);
    await Promise.resolve();
    endTurn();
  }
  expect(sent).toEqual([[CALM, [1]]]);
  write(HOT);
  clock.turn(50);
  endTurn();
  expect(sent).toEqual([
    [CALM, [1]],
    [HOT, [11, 12, 13]],
  ]);
  expect(await gateway.gathered()).toBe(1);
});

test("[FWH2] a gateway that stops sends the edits that it gathers, and sends none twice", async () => {
  const gateway = rig();
  await spendCredit(gateway);
  const { rooms, write, endTurn, sent, clock } = gateway;
  write(HOT);
  endTurn();
  rooms.stop();
  expect(sent).toEqual([[HOT, [11]]]);
  clock.turn(50);
  endTurn();
  expect(sent).toHaveLength(1);
});

test("[FWH3] edits that are sent again after NATS was out of reach are not sent a second time when their room is due", async () => {
  const gateway = rig();
  await spendCredit(gateway);
  const { rooms, write, endTurn, sent, clock } = gateway;
  write(HOT);
  endTurn();
  rooms.receiveBackboneLost();
  rooms.receiveBackboneFound();
  endTurn();
  const again = sent.flatMap(([, edits]) => edits);
  expect(again).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  clock.turn(50);
  endTurn();
  expect(sent.flatMap(([, edits]) => edits)).toEqual(again);
});

test("[FWH4] thousands of rooms with the same event write few lines to the log", () => {
  let lines = 0;
  const { rooms } = rig({ ...SILENT_LOG, warn: () => void (lines += 1) });
  for (let index = 0; index < 1_000; index++) rooms.receiveAnswer(room(`r${index}`), Uint8Array.of(255));
  expect(lines).toBeGreaterThan(0);
  expect(lines).toBeLessThanOrEqual(10);
});
