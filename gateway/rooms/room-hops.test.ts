import { expect, test } from "vitest";

import { type OwnerReply, encodeOwnerReply } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { EditHops } from "../ports.ts";
import { followedRooms } from "../testing/followed-rooms.ts";

const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const USER = "ada" as UserId;
const EPOCH = 5 as Epoch;
const STAMP = { id: "rs-1.1", time: 0 as UnixMillis };

/** A host of rooms without members, for edits over HTTP, and the hops that it reports. */
function host() {
  const reported: unknown[] = [];
  const hops: EditHops = {
    received: (room, { counter }) => void reported.push(["received", room, counter]),
    forwarded: (room, message) => void reported.push(["forwarded", room, message.kind]),
    answered: (room, answer) => void reported.push(["answered", room, answer.kind]),
    committed: (room, { runs }) => void reported.push(["committed", room, runs.map(({ counter }) => counter)]),
    delivering: (_, __, deliver) => deliver(),
  };
  return { ...followedRooms({}, { hops }), reported };
}

test("[TRC27] the gateway's rooms report each hop of an edit when it happens", async () => {
  const { rooms, reported, endTurn } = host();
  const author = { user: USER, client: CLIENT };
  const edit = (counter: number) => ({ author, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) });
  rooms.receiveWrite(ROOM, edit(1));
  expect(reported).toEqual([["received", ROOM, 1]]);
  await Promise.resolve(); // The room is followed now.
  endTurn();
  rooms.receiveFromOwner(ROOM, encodeEpochRecord({ ...STAMP, epoch: EPOCH, head: 0 as Seq }));
  const committed = {
    epoch: EPOCH,
    firstSeq: 1 as Seq,
    edits: [{ client: CLIENT, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(1) }],
  };
  rooms.receiveFromOwner(ROOM, encodeEditsRecord({ ...STAMP, users: new Map([[CLIENT, USER]]), edits: committed }));
  const answer: OwnerReply = { kind: "acked", epoch: EPOCH, client: CLIENT, counter: 1, seq: 1 as Seq, exact: true };
  rooms.receiveAnswer(ROOM, encodeOwnerReply(answer));
  expect(reported).toEqual([
    ["received", ROOM, 1],
    ["forwarded", ROOM, "edits"],
    ["forwarded", ROOM, "edits"], // Again, to the owner of the new epoch.
    ["committed", ROOM, [1]],
    ["answered", ROOM, "acked"],
  ]);
});
