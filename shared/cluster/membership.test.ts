import { expect, test } from "vitest";

import type { Millis, ServerId, UnixMillis } from "../ids.ts";
import { Membership } from "./membership.ts";

const beat = (server: string, draining = false) => ({ server: server as ServerId, rooms: 0, draining, time: 0 as UnixMillis });
const at = (ms: number) => ms as Millis;

test("[MBR1] a server is live until it has been silent for longer than allowed", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("a"), at(0));
  expect(membership.isLive("a" as ServerId, at(750))).toBe(true);
  expect(membership.isLive("a" as ServerId, at(751))).toBe(false);
  expect(membership.available(at(751))).toEqual([]);
});

test("[MBR2] a draining server is live but takes no new room", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("b"), at(0));
  membership.receiveHeartbeat(beat("a", true), at(0));
  expect(membership.live(at(1)).map(({ server }) => server)).toEqual(["a", "b"]);
  expect(membership.available(at(1))).toEqual(["b"]);
});

test("[MBR5] servers of a pool take rooms while no server outside the pools does", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  const pooled = { ...beat("p"), labels: { host: "", zone: "", pool: "gold" } };
  membership.receiveHeartbeat(pooled, at(0));
  expect(membership.available(at(1))).toEqual(["p"]);
  membership.receiveHeartbeat(beat("a"), at(0));
  expect(membership.available(at(1))).toEqual(["a"]);
});

test("[MBR3] a silent server is reported as lost once", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("a"), at(0));
  membership.receiveHeartbeat(beat("b"), at(300));
  expect([0, 300, 600, 751].map((ms) => membership.takeLost(at(ms)))).toEqual([[], [], [], ["a"]]);
  expect(membership.takeLost(at(900))).toEqual([]);
});

test("[MBR4] a process that was paused itself reports no server as lost", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("a"), at(0));
  membership.takeLost(at(100));
  expect(membership.takeLost(at(5_000))).toEqual([]);
  expect([5_300, 5_600].map((ms) => membership.takeLost(at(ms)))).toEqual([[], []]);
  expect(membership.takeLost(at(6_000))).toEqual([]); // A pause of 400 ms, which ends after the allowed silence.
  expect([6_300, 6_600, 6_751].map((ms) => membership.takeLost(at(ms)))).toEqual([[], [], ["a"]]);
});

test("[MBR6] the next check is due when the next server may be silent, and often before", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  expect(membership.nextLookAt(at(0))).toBe(150);
  membership.receiveHeartbeat(beat("a"), at(0));
  expect([600, 700].map((ms) => membership.nextLookAt(at(ms)))).toEqual([750, 751]);
  expect(membership.nextLookAt(at(800)), "late").toBe(800);
  expect(membership.takeLost(at(750))).toEqual([]);
  expect(membership.takeLost(at(membership.nextLookAt(at(750))))).toEqual(["a"]);
});

test("[MBR7] a member that announces a longer heartbeat interval is given three of its own intervals", () => {
  const membership = new Membership({ silenceMsMax: 600 });
  membership.receiveHeartbeat({ ...beat("often"), everyMs: 100 }, at(0));
  membership.receiveHeartbeat({ ...beat("seldom"), everyMs: 1_000 }, at(0));
  expect(membership.silenceMsMost).toBe(3_000);
  expect([200, 400, 600, 601, 800].map((ms) => membership.takeLost(at(ms)))).toEqual([[], [], [], ["often"], []]);
  for (let ms = 1_000; ms <= 3_000; ms += 200) expect(membership.takeLost(at(ms))).toEqual([]);
  expect([2_000, 2_001].map((ms) => membership.isFresh("seldom" as ServerId, at(ms)))).toEqual([true, false]);
  expect(membership.live(at(3_000)).map(({ server }) => server)).toEqual(["seldom"]);
  expect(membership.nextLookAt(at(2_990))).toBe(3_001);
  expect(membership.takeLost(at(3_001))).toEqual(["seldom"]);
});

test("[MBR8] a member without an announced interval is given three heartbeats of earlier versions, 250 ms each", () => {
  const membership = new Membership({ silenceMsMax: 600 });
  membership.receiveHeartbeat(beat("earlier"), at(0));
  membership.receiveHeartbeat({ ...beat("current"), everyMs: 200 }, at(0));
  expect(membership.live(at(700)).map(({ server }) => server)).toEqual(["earlier"]);
  expect([200, 400, 601, 750, 751].map((ms) => membership.takeLost(at(ms)))).toEqual([[], [], ["current"], [], ["earlier"]]);
});

test("[MBR9] a server that announces its end is neither live nor lost", () => {
  const membership = new Membership({ silenceMsMax: 750 });
  membership.receiveHeartbeat(beat("a"), at(0));
  membership.receiveHeartbeat({ ...beat("a", true), ends: true }, at(100));
  expect(membership.live(at(100))).toEqual([]);
  expect([300, 600, 900].map((ms) => membership.takeLost(at(ms)))).toEqual([[], [], []]);
});
