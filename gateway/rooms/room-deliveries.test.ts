import { expect, test } from "vitest";

import { encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { followedRooms } from "../testing/followed-rooms.ts";

const ROOM = "default.plan" as RoomKey;
const OWN = "AAAAAAAAAAAAAAAA" as ClientId;
const OTHER = "BBBBBBBBBBBBBBBB" as ClientId;
const USER = "ada" as UserId;
const EPOCH = 5 as Epoch;
const STAMP = { id: "rs-1.1", time: 0 as UnixMillis };

/** A host of a room with one member, at another gateway. The room's edits may have 10,000 bytes at once. */
async function host({ bytesPerSecond = "1" } = {}) {
  let now = 0;
  const clock = { now: () => now as Millis, wallNow: () => 0 as UnixMillis, after: () => () => {} };
  const flags = { roomDeliveryBytesBurst: "10000", roomDeliveryBytesPerSecond: bytesPerSecond };
  const { rooms, quotas, registry } = followedRooms(flags, { clock });
  quotas.receiveReport({ source: "g2", counts: [{ kind: "room", key: ROOM, count: 1 }] }, clock.now());
  const author = { user: USER, client: OWN };
  const write = (counter: number, bytes: number): void =>
    rooms.receiveWrite(ROOM, { author, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(bytes) });
  const commit = (client: ClientId, seq: number, bytes: number): void => {
    const edits = [{ client, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(bytes) }];
    const users = new Map([[client, USER]]);
    rooms.receiveFromOwner(ROOM, encodeEditsRecord({ ...STAMP, users, edits: { epoch: EPOCH, firstSeq: seq as Seq, edits } }));
  };
  const refused = async (): Promise<unknown> =>
    (await registry.getSingleMetric("coroom_gateway_limits_reached_total")!.get()).values.map(({ labels, value }) => [
      labels["limit"],
      value,
    ]);
  write(1, 4_000);
  await Promise.resolve(); // The room is followed now.
  rooms.receiveFromOwner(ROOM, encodeEpochRecord({ ...STAMP, epoch: EPOCH, head: 0 as Seq }));
  return { write, commit, refused, pass: (ms: number) => void (now += ms) };
}

test("[RDH1] an own edit is charged once, when it arrives, and not again when it is delivered", async () => {
  const { write, commit, refused } = await host();
  commit(OWN, 1, 4_000);
  write(2, 5_000);
  expect(await refused()).toEqual([]);
  write(3, 5_000);
  expect(await refused()).toEqual([["room-delivery", 1]]);
});

test("[RDH2] edits that writers at other gateways sent are charged when they are delivered", async () => {
  const { write, commit, refused } = await host();
  commit(OTHER, 1, 5_000);
  write(2, 5_000);
  expect(await refused()).toEqual([["room-delivery", 1]]);
});

test("[RDH3] edits that are not delivered yet count, however much time passes", async () => {
  const { write, commit, refused, pass } = await host({ bytesPerSecond: "1000000" });
  pass(1_000);
  write(2, 5_000);
  pass(1_000);
  write(3, 5_000);
  expect(await refused()).toEqual([["room-delivery", 1]]);
  commit(OWN, 1, 4_000);
  write(3, 5_000);
  expect(await refused()).toEqual([["room-delivery", 1]]);
});
