/**
 * Documents stored on a device, and their log, which was trimmed meanwhile, is caught up by a snapshot, or was lost.
 */

import { expect, test } from "vitest";

import { RoomConnection } from "../room/room-connection-host.ts";
import { MemoryStore, receivedFrames, MINUTE, NOTES, serverOn } from "../testing/memory-store.ts";
import type { ModelServer } from "../testing/model-server.ts";
import { TestPage } from "../testing/test-page.ts";
import { DeviceStore } from "./device-store.ts";

async function opened(server: ModelServer, device: MemoryStore | undefined, seed: number): Promise<TestPage> {
  const page = new TestPage(server, device, seed);
  await server.clock.advance(1_000);
  return page;
}

/** Types each word as one edit. */
async function typeEach(page: TestPage, words: readonly string[], server: ModelServer): Promise<void> {
  for (const word of words) {
    page.type(word);
    await server.clock.advance(1_000);
  }
}

async function withTwoEdits(): Promise<{ server: ModelServer; device: MemoryStore }> {
  const server = serverOn();
  await typeEach(await opened(server, undefined, 1), ["a ", "b "], server);
  return { server, device: new MemoryStore() };
}

test.each([
  ["is empty", 0],
  ["has fewer edits", 1],
  ["has as many edits", 2],
  ["has more edits", 3],
])("[KPO1] a document stored from a lost log is sent to the current log, which %s", async (_, edits) => {
  const added = Array.from({ length: edits }, (_, edit) => `new${edit} `);
  const [lost, device] = [serverOn(), new MemoryStore()];
  const ann = await opened(lost, device, 1);
  await typeEach(ann, ["old ", "text "], lost);
  ann.close();
  const server = serverOn();
  const bob = await opened(server, undefined, 2);
  await typeEach(bob, added, server);
  const again = new TestPage(server, device, 3);
  await server.clock.advance(MINUTE);
  expect(again.text).toBe(bob.text);
  for (const word of ["old ", "text ", ...added]) expect(again.text.split(word)).toHaveLength(2);
  expect([again.provider.saved, again.provider.synced, again.provider.seq]).toEqual([true, true, server.room(NOTES).head]);
  again.close();
  const third = new TestPage(server, device, 4);
  const joins = receivedFrames(server, "join").length;
  await server.clock.advance(1_000);
  expect([third.text, receivedFrames(server, "join").length - joins], "the stored document belongs to the new log").toEqual([bob.text, 1]);
});

test("[KPO3] the room is not synced before the stored document is known to belong to the log", async () => {
  const [lost, server, device] = [serverOn(), serverOn(), new MemoryStore()];
  const format = {
    merge: (payloads: readonly Uint8Array[]) => new Uint8Array(payloads.flatMap((payload) => [...payload])),
    split: () => undefined,
  };
  const facts: string[] = [];
  const open = (on: ModelServer, seed: number) => {
    const page = device.forPage();
    const host = new RoomConnection({ url: "ws://h", token: "t", room: NOTES, store: new DeviceStore(page), format }, on.world(seed));
    host.on("synced", (synced) => facts.push(synced ? "synced" : "not synced"));
    host.on("rolled-back", () => facts.push("rolled back"));
    return async (edits: number) => {
      for (let edit = 0; edit < edits; edit++) {
        await on.clock.advance(1_000);
        host.send(new Uint8Array([seed, edit]));
      }
      await on.clock.advance(MINUTE);
      page.die();
      host.destroy();
      return facts.splice(0);
    };
  };
  await open(lost, 1)(2);
  expect(await open(lost, 2)(0), "the same log").toEqual(["synced", "not synced"]);
  const bob = new RoomConnection({ url: "ws://h", token: "t", room: NOTES }, server.world(3));
  for (const value of [8, 9]) {
    await server.clock.advance(1_000);
    bob.send(new Uint8Array([value]));
  }
  await server.clock.advance(1_000);
  expect(await open(server, 4)(0), "another, as long").toEqual(["rolled back", "synced", "not synced"]);
});

test("[KPO2] when the log is trimmed beyond the stored position a snapshot catches up, and nothing is sent again", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const [ann, bob] = [new TestPage(server, device, 1), new TestPage(server, undefined, 2)];
  await server.clock.advance(1_000);
  ann.type("a ");
  await server.clock.advance(1_000);
  ann.close();
  await typeEach(bob, ["b ", "c ", "d "], server);
  server.room(NOTES).trimmedThrough = 3;
  for (const seed of [3, 4]) {
    const again = new TestPage(server, device, seed); // The document that the second page opens has no known last edit.
    await server.clock.advance(1_000);
    expect([again.text, again.provider.saved, server.room(NOTES).head]).toEqual(["a b c d ", true, 4]);
    again.close();
  }
});

test("[KPO5] a stored document that ended with a snapshot continues from the snapshot if the log still has its last edit", async () => {
  const { server, device } = await withTwoEdits();
  Object.assign(server.room(NOTES), { trimmedThrough: 1, snapshotThrough: 2 });
  const ann = await opened(server, device, 2);
  ann.close();
  server.snapshotsAvailable = false;
  const joins = receivedFrames(server, "join").length;
  const again = new TestPage(server, device, 3);
  await server.clock.advance(1_000);
  expect([again.text, again.provider.synced, again.provider.seq, again.events]).toEqual(["a b ", true, 2, ["restored"]]);
  expect(
    receivedFrames(server, "join")
      .slice(joins)
      .map(({ position }) => position.seq),
  ).toEqual([1]);
});

test("[KPO2] edits typed offline on a document that ended in a snapshot are sent and counted once", async () => {
  const { server, device } = await withTwoEdits();
  server.room(NOTES).trimmedThrough = 2;
  const ann = await opened(server, device, 2);
  server.reachable = false;
  server.cut();
  ann.type("offline ");
  await server.clock.advance(1_000);
  ann.close();
  server.reachable = true;
  const again = new TestPage(server, device, 3);
  let unsavedMost = 0;
  for (const name of ["synced", "saved", "restored"] as const)
    again.provider.on(name, () => (unsavedMost = Math.max(unsavedMost, again.provider.unsavedEdits)));
  await server.clock.advance(MINUTE);
  expect([again.text, again.provider.saved, server.room(NOTES).head, unsavedMost]).toEqual(["a b offline ", true, 3, 1]);
});

test("[KPO6] a connection that starts from a known edit receives only later ones; if the log has another edit there, it receives all", async () => {
  const [server, other] = [serverOn(), serverOn()];
  const write = async (on: ModelServer, seed: number, values: readonly number[]) => {
    const writer = new RoomConnection({ url: "ws://h", token: "t", room: NOTES, mergeUnsent: false }, on.world(seed));
    for (const value of values) {
      await on.clock.advance(1_000);
      writer.send(new Uint8Array([value]));
    }
    await on.clock.advance(1_000);
    return writer;
  };
  const writer = await write(server, 1, [1, 2]);
  const since = { position: writer.position, last: { client: writer.client!, counter: 2 } };
  const received: string[] = [];
  const follow = async (on: ModelServer, seed: number) => {
    const follower = new RoomConnection({ url: "ws://h", token: "t", room: NOTES, since }, on.world(seed));
    follower.on("edits", (edits) => received.push(...edits.map(({ payload }) => `${payload}`)));
    follower.on("rolled-back", () => received.push("rolled back"));
    follower.on("synced", (synced) => synced && received.push("synced"));
    await on.clock.advance(MINUTE);
    return follower;
  };
  const follower = await follow(server, 2);
  expect([received.splice(0), follower.position]).toEqual([["synced"], since.position]);
  writer.send(new Uint8Array([3]));
  await server.clock.advance(1_000);
  expect(received.splice(0)).toEqual(["3"]);
  await write(other, 3, [7, 8, 9]);
  await follow(other, 4);
  expect(received).toEqual(["rolled back", "7", "8", "9", "synced"]);
});
