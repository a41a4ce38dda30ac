/** A store that opens after the room has stopped waiting for it. Its edits are sent, once, and nothing is lost. */

import { expect, test } from "vitest";

import type { ClientFakeClock } from "../testing/fake-clock.ts";
import { MemoryStore, receivedFrames, lengthsInLog, serverOn } from "../testing/memory-store.ts";
import type { ModelServer } from "../testing/model-server.ts";
import { App, TestPage } from "../testing/test-page.ts";
import { DeviceStore } from "./device-store.ts";

/** Longer than a room waits. */
const LATE_MS = 12_000;

function openLate(device: MemoryStore, clock: ClientFakeClock): void {
  device.opening = () => new Promise((resolve) => void clock.after(LATE_MS, resolve));
}

/** A device with a document, an edit that was sent and whose fate is unknown, and one that was typed offline. The page has ended. */
async function leftOffline(server: ModelServer, committed: boolean): Promise<MemoryStore> {
  const device = new MemoryStore();
  const before = new TestPage(server, device, 1);
  await server.clock.advance(1_000);
  before.type("saved ");
  await server.clock.advance(1_000);
  server.faults = { ...server.faults, ...(committed ? { committedFrameLost: 1 } : { editLost: 1 }) };
  before.type("sent ");
  await server.clock.advance(10);
  server.reachable = false;
  server.cut();
  before.type("offline ");
  await server.clock.advance(1_000);
  before.close();
  server.faults = { ...server.faults, committedFrameLost: 0, editLost: 0 };
  return device;
}

test.each([true, false])(
  "[KEE12] a store that opens late without a connection is used as if it had opened in time (committed before: %s)",
  async (committed) => {
    const server = serverOn();
    const device = await leftOffline(server, committed);
    openLate(device, server.clock);
    const page = new TestPage(server, device, 2);
    await server.clock.advance(9_000);
    page.type("new");
    expect([page.text, page.provider.stored, page.events]).toEqual(["new", false, ["storage-failed"]]);
    await server.clock.advance(5_000);
    expect([...["saved ", "sent ", "offline ", "new"].map((word) => page.text.includes(word)), page.provider.stored]).toEqual(
      Array(5).fill(true),
    );
    expect(page.events).toEqual(["storage-failed", "restored"]);
    server.reachable = true;
    await server.clock.advance(60_000);
    const bob = new TestPage(server, undefined, 3);
    await server.clock.advance(1_000);
    expect([bob.text, page.provider.saved, bob.text.length]).toEqual([page.text, true, "saved sent offline new".length]);
    expect(lengthsInLog(server)).toBe(3);
  },
);

test.each([true, false])(
  "[KEE13] a store that opens late in a joined room sends the earlier edits once, and stores from then on (committed before: %s)",
  async (committed) => {
    const server = serverOn();
    const device = await leftOffline(server, committed);
    server.reachable = true;
    openLate(device, server.clock);
    const page = new TestPage(server, device, 2);
    await server.clock.advance(11_000);
    page.type("new ");
    await server.clock.advance(500);
    expect([page.text.includes("offline"), page.provider.saved, page.provider.synced]).toEqual([false, true, true]);
    await server.clock.advance(5_000);
    page.type("later");
    await server.clock.advance(5_000);
    const bob = new TestPage(server, undefined, 3);
    await server.clock.advance(1_000);
    expect([bob.text, page.provider.saved, bob.text.length]).toEqual([page.text, true, "saved sent offline new later".length]);
    expect(lengthsInLog(server)).toBe(5);
    expect(new Set(receivedFrames(server, "join").map(({ clientKey }) => clientKey.slice(0, 5)))).toEqual(
      new Set(["key-1", "key-2", "key-3"]),
    );

    server.reachable = false;
    server.cut();
    page.type(" kept");
    await server.clock.advance(1_000);
    expect([page.provider.saved, page.provider.stored]).toEqual([false, true]);
    page.close();
    device.opening = () => Promise.resolve();
    const next = new TestPage(server, device, 4);
    server.reachable = true;
    await server.clock.advance(60_000);
    expect([next.text, next.provider.saved, lengthsInLog(server)]).toEqual([bob.text, true, 6]);
    expect(next.text.length).toBe("saved sent offline new later kept".length);
  },
);

test("[KEE14] a store that opens after the room was deleted is emptied, and its edits are not sent", async () => {
  const server = serverOn();
  const device = await leftOffline(server, false);
  openLate(device, server.clock);
  server.reachable = true;
  const page = new TestPage(server, device, 2);
  await server.clock.advance(9_000);
  server.send({ type: "left", channel: 1, reason: "deleted" });
  await server.clock.advance(10_000);
  expect([page.events, lengthsInLog(server)]).toEqual([["storage-failed"], 1]);
  device.opening = () => Promise.resolve();
  server.reachable = false;
  const next = new TestPage(server, device, 3);
  await server.clock.advance(1_000);
  expect([next.text, next.provider.unsavedEdits]).toEqual(["", 0]);
});

test("[KEE14] a store that opens after the room was left permanently is closed, and the next page has its edits", async () => {
  const server = serverOn();
  const device = await leftOffline(server, false);
  openLate(device, server.clock);
  const page = new TestPage(server, device, 2);
  await server.clock.advance(9_000);
  page.provider.destroy();
  await server.clock.advance(10_000);
  expect(page.events).toEqual(["storage-failed"]);
  device.opening = () => Promise.resolve();
  const next = new TestPage(server, device, 3);
  server.reachable = true;
  await server.clock.advance(60_000);
  expect([next.text, next.provider.saved]).toEqual(["saved sent offline ", true]);
});

test("[KEE15] in a joined room of other payloads a late store is left for the next page, because the application may not apply an edit twice", async () => {
  const server = serverOn();
  const device = new MemoryStore();
  const room = (seed: number) => new App(server, seed, { store: new DeviceStore(device) });
  server.reachable = false;
  const first = room(1);
  await server.clock.advance(1_000);
  first.host.send(Uint8Array.of(7));
  await server.clock.advance(1_000);
  first.host.destroy();
  await server.clock.advance(1_000);
  openLate(device, server.clock);
  server.reachable = true;
  const joined = room(2);
  const restored: unknown[] = [];
  joined.host.on("restored", (edits) => restored.push(...edits));
  await server.clock.advance(30_000);
  expect([joined.host.status, restored, joined.edits]).toEqual(["connected", [], []]);
  device.opening = () => Promise.resolve();
  const next = room(3);
  await server.clock.advance(30_000);
  expect([next.host.saved, joined.edits]).toEqual([true, ["1:7"]]);
});
