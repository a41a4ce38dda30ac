import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { RoomKey, ServerId } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomServerMetrics } from "../metrics.ts";
import { RoomTakeovers } from "./handovers-host.ts";

const lost = "two" as ServerId;

/** `taken`: whether this server won the room. A claim is settled when the test calls `settle`. */
function takeOversOf(rooms: number, taken: (room: RoomKey) => boolean) {
  const copies = Array.from({ length: rooms }, (_, index) => `acme.r${index}` as RoomKey);
  const [asked, settle] = [[] as RoomKey[], [] as (() => void)[]];
  const takeOver = (room: RoomKey, from: ServerId): Promise<boolean> => {
    expect(from).toBe(lost);
    asked.push(room);
    return new Promise((resolve) => settle.push(() => resolve(taken(room))));
  };
  const takeovers = new RoomTakeovers(
    { rooms: { takeOver }, replicas: { copiesOf: (server) => (server === lost ? copies : []) } },
    { clock: new FakeClock(), log: SILENT_LOG, metrics: roomServerMetrics(new Registry()) },
  );
  return { takeovers, asked, settle };
}

test("[TKO1] all rooms of a lost server are taken over, a limited number at a time", async () => {
  const { takeovers, asked, settle } = takeOversOf(300, () => true);
  const done = takeovers.receiveLost(lost);
  expect(asked).toHaveLength(128);
  settle.shift()!();
  await new Promise(setImmediate);
  expect(asked).toHaveLength(129);
  for (let settled = 1; settled < 300; settled++) {
    settle.shift()!();
    await new Promise(setImmediate);
  }
  await done;
  expect(new Set(asked).size).toBe(300);
});

test("[TKO2] a room that another server claimed does not end the takeover; a lost server without replicas here causes no claims", async () => {
  const { takeovers, asked, settle } = takeOversOf(2, (room) => room === "acme.r0");
  const done = takeovers.receiveLost(lost);
  for (const one of settle) one();
  await done;
  await takeovers.receiveLost("three" as ServerId);
  expect(asked).toEqual(["acme.r0", "acme.r1"]);
});
