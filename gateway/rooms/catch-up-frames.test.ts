import { expect, test } from "vitest";

import { encodeOwnerReply, type ToOwner } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord } from "../../shared/bus/record.ts";
import { type ClientId, type Epoch, type RoomKey, type Seq, START, type UnixMillis, type UserId } from "../../shared/ids.ts";
import { FrameType } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import { followedRooms } from "../testing/followed-rooms.ts";

const ROOM = "default.plan" as RoomKey;
const CLIENT = "AAAAAAAAAAAAAAAA" as ClientId;
const EPOCH = 5 as Epoch;

/** A gateway's rooms, the messages to owners, and the frames with edits that members receive. */
function host() {
  const [asked, frames]: [ToOwner[], Uint8Array[]] = [[], []];
  const send = (_: ConnectionId, frame: Uint8Array): void => {
    if (frame[0] === FrameType.committed) frames.push(frame);
  };
  const { rooms } = followedRooms({}, { send, sendToOwner: (_, message) => void asked.push(message) });
  return { rooms, asked, frames };
}

test("[CUF1] recent edits are encoded once, however often members request them", async () => {
  const { rooms, asked, frames } = host();
  const join = (connection: number): void =>
    rooms.receiveJoin(ROOM, { kind: "join", connection: connection as ConnectionId, request: 1, client: CLIENT, position: START });
  join(1);
  await Promise.resolve(); // The room is followed now.
  const question = asked.find(({ kind }) => kind === "catch-up-request") as ToOwner & { kind: "catch-up-request" };
  const nothing = { kind: "edits", parts: [] } as const;
  rooms.receiveAnswer(
    ROOM,
    encodeOwnerReply({ kind: "catch-up", request: question.request, epoch: EPOCH, head: 0 as Seq, answer: nothing }),
  );
  const edits = {
    epoch: EPOCH,
    firstSeq: 1 as Seq,
    edits: [{ client: CLIENT, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(9) }],
  };
  const users = new Map([[CLIENT, "ada" as UserId]]);
  rooms.receiveFromOwner(ROOM, encodeEditsRecord({ id: "rs-1.1", time: 0 as UnixMillis, users, edits }));
  join(2);
  for (let time = 0; time < 3; time++)
    rooms.receiveInput(ROOM, { kind: "replay", connection: 2 as ConnectionId, after: 0 as Seq, through: 1 as Seq });
  expect(frames).toHaveLength(4);
  expect(new Set(frames).size).toBe(1);
});
