/**
 * Follows one edit from its author's keyboard to each client in the room, through the real parts and without faults.
 * Read this test first. Each step is one hop of the table in ARCHITECTURE.md, and names the file that makes its
 * decision. The test replaces the hosts and adapters: it passes each effect to the next part by hand.
 */

import { expect, test } from "vitest";

import { decodeToOwner, encodeToOwner } from "../../shared/bus/envelope.ts";
import { decodeRecord } from "../../shared/bus/record.ts";
import { decodeFrame, encodeCommittedFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { ServerFrame } from "../../shared/wire/frames.ts";
import { readFromOwner } from "../../gateway/rooms/room-messages.ts";
import { CHANNEL, joinedRoom, NOW, the } from "./joined-room.ts";

const HELLO = new TextEncoder().encode("hello");

test("one edit is acknowledged and delivered to all members once the log has it", () => {
  const { ann, ben, gateway, owner } = joinedRoom();

  // client/room/edit-sender.ts sends the edit. client/room/outbox.ts numbers it, and keeps it until it is acknowledged.
  ann.room.receiveInput({ kind: "edit", payload: HELLO }, NOW);
  const { frame } = the("send", ann.room.receiveInput({ kind: "tick" }, NOW));
  expect(frame).toEqual({ type: "edit", channel: CHANNEL, counter: 1, ackedThrough: 0, parentSeq: 0, payload: HELLO });

  // gateway/sessions/client-session.ts decodes the edit, checks that Ann may write, and adds Ann's user id.
  const { edit } = the("edit", ann.session.receiveFrame(encodeFrame(frame), NOW));
  expect(edit).toEqual({ author: { user: "ann", client: ann.client }, counter: 1, ackedThrough: 0, parentSeq: 0, payload: HELLO });

  // gateway/rooms/edit-relay.ts keeps the edit until the log has it. At the end of the turn it sends the edit to the
  // current owner.
  expect(gateway.receiveInput({ kind: "edit", connection: ann.connection, edit }, NOW)).toEqual([]);
  const { message } = the("send-to-owner", gateway.receiveInput({ kind: "turn-ended" }, NOW));
  const overNats = encodeToOwner(message);

  // room-server/rooms/sequencer.ts checks that the edit is the next one of Ann's client.
  // room-server/rooms/intake.ts has no record in flight, so it makes a record with the next seq. The log accepts
  // this record only directly after the owner's last one. No message is sent yet.
  const toAppend = owner.receiveOwnershipInput({ kind: "message", message: decodeToOwner(overNats)!, bytes: overNats.byteLength }, NOW);
  expect(toAppend.map(({ kind }) => kind)).toEqual(["append"]);
  const { record } = the("append", toAppend);
  expect(record.expectedStreamSeq).toBe(1);
  expect(decodeRecord(record.bytes)).toMatchObject({
    kind: "edits",
    edits: { epoch: 1, firstSeq: 1, edits: [{ client: ann.client, counter: 1, payload: HELLO }] },
  });
  expect(ann.room.unsavedEdits).toBe(1);

  // The log stores the record, and republishes the stored record. The owner receives the outcome from the log, and does
  // not publish the record itself.
  expect(owner.receiveOwnershipInput({ kind: "append-settled", outcome: { kind: "appended", streamSeq: 2 } }, NOW)).toEqual([]);

  // gateway/rooms/edit-feed.ts checks that the record is the next one in the room's order. It sends all clients the
  // same encoded bytes, except Ann: she has the edit already, and receives an acknowledgement instead.
  const toMembers = gateway.receiveInput({ kind: "from-owner", message: readFromOwner(record.bytes)! }, NOW);
  const { batch, except } = the("publish-edits", toMembers);
  const { to, frame: ack } = the("send", toMembers);
  expect({ firstSeq: batch.firstSeq, lastSeq: batch.lastSeq, except }).toEqual({ firstSeq: 1, lastSeq: 1, except: ann.connection });
  expect({ to, ack }).toEqual({ to: [ann.connection], ack: { type: "ack", channel: CHANNEL, epoch: 1, counter: 1, seq: 1, count: 1 } });

  // client/room/incoming-edits.ts delivers the edit to Ben in order; client/room/outbox.ts removes Ann's edit. Both
  // clients have the same position.
  const committed = decodeFrame(encodeCommittedFrame(CHANNEL, batch.bytes)) as ServerFrame & { type: "committed" };
  const toBen = ben.room.receiveInput({ kind: "frame", frame: committed }, NOW);
  const toAnn = ann.room.receiveInput({ kind: "frame", frame: ack as ServerFrame & { type: "ack" } }, NOW);
  expect(the("deliver", toBen).edits).toEqual([{ seq: 1, client: ann.client, counter: 1, payload: HELLO, own: false }]);
  expect(the("deliver", toAnn).edits).toEqual([{ seq: 1, client: ann.client, counter: 1, payload: HELLO, own: true }]);
  expect(ann.room.unsavedEdits).toBe(0);
  expect([ann.room.position, ben.room.position]).toEqual([
    { epoch: 1, seq: 1 },
    { epoch: 1, seq: 1 },
  ]);
});
