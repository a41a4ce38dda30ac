import { expect, test } from "vitest";

import type { Millis, ServerId, UnixMillis } from "./ids.ts";
import { Membership } from "./membership.ts";

const beat = (server: string, draining = false) => ({ server: server as ServerId, rooms: 0, draining, time: 0 as UnixMillis });
const at = (ms: number) => ms as Millis;

test("[MBR1] a server is live until it was silent for longer than allowed", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("a"), at(0));
  expect(membership.isLive("a" as ServerId, at(750))).toBe(true);
  expect(membership.isLive("a" as ServerId, at(751))).toBe(false);
  expect(membership.available(at(751))).toEqual([]);
});

test("[MBR2] a draining server lives but takes no new room", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("b"), at(0));
  membership.receiveHeartbeat(beat("a", true), at(0));
  expect(membership.isLive("a" as ServerId, at(1))).toBe(true);
  expect(membership.available(at(1))).toEqual(["b"]);
});

test("[MBR3] a server that fell silent is reported lost once", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("a"), at(0));
  membership.receiveHeartbeat(beat("b"), at(300));
  expect([0, 300, 600, 751].map((ms) => membership.takeLost(at(ms)))).toEqual([[], [], [], ["a"]]);
  expect(membership.takeLost(at(900))).toEqual([]);
});

test("[MBR4] whoever was paused itself takes nobody for lost", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("a"), at(0));
  membership.takeLost(at(100));
  expect(membership.takeLost(at(5_000))).toEqual([]);
  expect([5_300, 5_600, 5_751].map((ms) => membership.takeLost(at(ms)))).toEqual([[], [], ["a"]]);
});

test("[MBR6] it is looked again as soon as the next may have fallen silent, and often meanwhile", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  expect(membership.nextLookAt(at(0))).toBe(150);
  membership.receiveHeartbeat(beat("a"), at(0));
  expect([600, 700].map((ms) => membership.nextLookAt(at(ms)))).toEqual([750, 751]);
  expect(membership.takeLost(at(750))).toEqual([]);
  expect(membership.takeLost(at(membership.nextLookAt(at(750))))).toEqual(["a"]);
});
