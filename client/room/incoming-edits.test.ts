/** Edits that arrive in a room: delivered in order and without gaps, tentative edits included. */

import { expect, test } from "vitest";

import type { ClientId, ClientKey, Epoch, Millis, Seq, UserId } from "../../shared/ids.ts";
import { OUTBOX, ROOM } from "../defaults.ts";
import { App, bytes, receivedFrames, MINUTE, NOTES, serverOn } from "../testing/test-page.ts";
import { IncomingEdits } from "./incoming-edits.ts";
import { Outbox } from "./outbox.ts";
import type { RoomSessionEffect } from "./room-messages.ts";

test("[FEE1] edits of another client acknowledge nothing, even with equal counters", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, editLost: 1 };
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.faults = { ...server.faults, editLost: 0 };
  bob.host.send(bytes(2));
  await server.clock.advance(100);
  expect(ann.edits).toEqual(["1:2"]);
  expect(ann.host.unsavedEdits).toBe(1);
  await server.clock.advance(MINUTE);
  expect(ann.host.saved, "nobody answered, so it was sent again").toBe(true);
});

test("[FEE2] while the log is slow edits are shown as tentative, acks wait, and all edits are confirmed in the end", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.setSaving(NOTES, "saving");
  for (let value = 1; value <= 90; value++) ann.host.send(bytes(value));
  await server.clock.advance(5_000);
  expect(bob.tentative).toHaveLength(90);
  expect([bob.edits.length, ann.host.unsavedEdits, ann.host.saving, ann.tentative.length]).toEqual([0, 90, "saving", 0]);
  server.setSaving(NOTES, "saved");
  await server.clock.advance(1_000);
  expect([bob.edits.length, ann.host.saved, ann.host.saving]).toEqual([90, true, "saved"]);
  await server.clock.advance(MINUTE);
  expect(receivedFrames(server, "resubmit")).toEqual([]);
});

test("[FEE3] tentative edits whose author and owner have disappeared are submitted by the clients that have them", async () => {
  const server = serverOn();
  const [ann, bob, cid] = [new App(server, 1), new App(server, 2), new App(server, 3)];
  await server.clock.advance(1_000);
  server.setSaving(NOTES, "saving");
  for (const value of [1, 2]) ann.host.send(bytes(value));
  await server.clock.advance(100);
  ann.host.destroy();
  server.room(NOTES).failOver();
  server.setSaving(NOTES, "saved");
  await server.clock.advance(30_000);
  expect(server.room(NOTES).log.map(({ payload }) => `${payload}`)).toEqual(["1", "2"]);
  expect([bob.edits, cid.edits]).toEqual([
    ["1:1", "2:2"],
    ["1:1", "2:2"],
  ]);
});

test("[FEE7] a tentative edit that a snapshot contains, by the author of its last edit, is not submitted again", () => {
  const feed = new IncomingEdits(ROOM.feed, new Outbox({ ...OUTBOX, format: undefined, mergeUnsent: true }), () => 0);
  const bob = "bobbobbobbobbob1" as ClientId;
  const effects: RoomSessionEffect[] = [];
  const tentative = (counter: number) => ({
    epoch: 1 as Epoch,
    user: "bob" as UserId,
    client: bob,
    counter,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    mac: bytes(0),
    payload: bytes(counter),
  });
  for (const counter of [1, 2, 3]) feed.receiveTentative(tentative(counter), 0 as Millis, effects);
  feed.receiveLast({ client: bob, counter: 2 }, effects);
  expect(feed.takeResubmits(MINUTE as Millis).resubmit.map(({ counter }) => counter)).toEqual([3]);
});

test("[FEE4] a gap is requested, and filled before later edits are delivered", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, committedFrameLost: 1 };
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.faults = { ...server.faults, committedFrameLost: 0 };
  ann.host.send(bytes(2));
  await server.clock.advance(1_000);
  expect(bob.edits).toEqual(["1:1", "2:2"]);
  expect(receivedFrames(server, "replay-request").map(({ after, through }) => [after, through])).toEqual([[0, 1]]);
});

test("[FEE5] the client rejoins if no replay fills a gap, and edits typed in the meantime are sent", async () => {
  const server = serverOn();
  const [ann, bob] = [new App(server, 1), new App(server, 2)];
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, committedFrameLost: 1 };
  ann.host.send(bytes(1));
  await server.clock.advance(100);
  server.faults = { ...server.faults, committedFrameLost: 0 };
  server.answersReplays = false;
  ann.host.send(bytes(2));
  await server.clock.advance(MINUTE);
  bob.host.send(bytes(3));
  await server.clock.advance(MINUTE);
  expect(receivedFrames(server, "replay-request").length).toBeGreaterThan(2);
  expect([bob.edits, bob.host.saved, bob.host.synced]).toEqual([["1:1", "2:2", "3:3 own"], true, true]);
});

test("[FEE6] only recovered edits of an earlier page are own, even when acknowledged before they arrive", () => {
  const outbox = new Outbox({ ...OUTBOX, format: undefined, mergeUnsent: true });
  const feed = new IncomingEdits(ROOM.feed, outbox, () => 0.5);
  const now = 0 as Millis;
  const sent = [3, 4].map((counter) => ({ client: undefined, counter, parentSeq: 0 as Seq, payload: bytes(counter), made: 1 }));
  outbox.inherit({ numberings: [{ clientKey: "before" as ClientKey, sent }], unsent: [], places: [] });
  outbox.newKey();
  const client = "client_before___" as ClientId;
  feed.joined(client, now);
  outbox.joined(client, now);
  outbox.receiveAck(3, now);
  feed.joined(client, now); // A new join.
  const edits = [1, 2, 3, 4, 5].map((counter) => ({ client, counter, parentSeq: 0 as Seq, payload: bytes(counter) }));
  const effects: RoomSessionEffect[] = [];
  feed.receiveCommitted({ type: "committed", channel: 1, edits: { epoch: 1 as Epoch, firstSeq: 1 as Seq, edits } }, true, now, effects);
  const delivered = effects.flatMap((effect) => (effect.kind === "deliver" ? effect.edits : []));
  expect(delivered.map(({ counter, own }) => [counter, own])).toEqual([
    [1, false],
    [2, false],
    [3, true],
    [4, true],
    [5, false],
  ]);
});
