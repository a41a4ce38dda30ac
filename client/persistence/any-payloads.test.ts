/** Rooms with arbitrary payloads stored on a device. Waiting edits are passed to the next page exactly once. */

import { expect, test } from "vitest";

import { RoomConnection } from "../room/room-connection-host.ts";
import { MemoryStore, MINUTE, NOTES, serverOn } from "../testing/memory-store.ts";
import type { ModelServer } from "../testing/model-server.ts";
import { DeviceStore } from "./device-store.ts";

type OpenPage = {
  readonly host: RoomConnection;
  /** Edits of earlier pages. */
  readonly restored: readonly string[];
  /** Edits of earlier pages, and of other users. */
  readonly had: readonly string[];
  /** Ends the page immediately, as a browser does. */
  readonly end: () => void;
};

function open(server: ModelServer, device: MemoryStore, seed: number): OpenPage {
  const page = device.forPage();
  const host = new RoomConnection({ url: "ws://h", token: "t", room: NOTES, store: new DeviceStore(page) }, server.world(seed));
  const [restored, had]: [string[], string[]] = [[], []];
  host.on("restored", (edits) => {
    const payloads = edits.map(({ payload }) => `${payload}`);
    restored.push(...payloads);
    had.push(...payloads);
  });
  host.on("edit", ({ payload, own }) => own || had.push(`${payload}`));
  const end = (): void => {
    page.die();
    host.destroy();
  };
  return { host, restored, had, end };
}

test("[KAP1] a room with arbitrary payloads stores unsent edits and passes them to the next page", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  server.reachable = false;
  const first = open(server, device, 1);
  for (const value of [1, 2, 3]) first.host.send(new Uint8Array([value]));
  await server.clock.advance(1_000);
  expect([first.host.stored, device.written]).toEqual([true, 3]);
  first.end();
  const second = open(server, device, 2);
  server.reachable = true;
  await server.clock.advance(MINUTE);
  expect([second.restored, second.host.saved, server.room(NOTES).log.map(({ payload }) => `${payload}`)]).toEqual([
    ["1", "2", "3"],
    true,
    ["1", "2", "3"],
  ]);
  second.host.destroy();
  await server.clock.advance(1_000);
  const third = open(server, device, 3);
  await server.clock.advance(1_000);
  expect([third.restored, third.host.seq], "nothing is left, and the room comes from the server").toEqual([[], 3]);
});

test("[KAP2] a recovered edit that was already ordered reaches the page once", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const first = open(server, device, 1);
  await server.clock.advance(1_000);
  first.host.send(new Uint8Array([1]));
  await server.clock.advance(1_000);
  server.commits = false;
  for (const value of [2, 3]) first.host.send(new Uint8Array([value]));
  await server.clock.advance(1_000);
  first.end();
  await server.clock.advance(1_000);
  server.commits = true;
  server.commit(NOTES); // No other client is there to receive it.

  const second = open(server, device, 2);
  await server.clock.advance(MINUTE);
  expect([second.host.saved, second.host.seq, second.had]).toEqual([true, 3, ["2", "3", "1"]]);
});

test("[KEE9] edits that several pages sent and one page recovers arrive once each", async () => {
  const [server, device] = [serverOn(), new MemoryStore()];
  const pages = [1, 2, 3].map((seed) => open(server, device, seed));
  await server.clock.advance(1_000);
  for (const { host } of pages) host.send(new Uint8Array([1]));
  await server.clock.advance(1_000);
  server.commits = false;
  for (const [index, { host }] of pages.entries()) for (const value of [2, 3]) host.send(new Uint8Array([10 * index + value]));
  await server.clock.advance(1_000);
  for (const page of pages) page.end();
  await server.clock.advance(1_000);
  server.commits = true;
  server.commit(NOTES); // No other client is there to receive it.

  const after = open(server, device, 4);
  await server.clock.advance(MINUTE);
  expect([after.host.saved, after.host.seq, after.had]).toEqual([true, 9, ["2", "3", "12", "13", "22", "23", "1", "1", "1"]]);
});
