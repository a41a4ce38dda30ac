import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { LIMITS } from "../testing/model-server.ts";
import { ClientRates } from "./client-rates.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;

function takeAll({ edits }: ClientRates, ms: number): number {
  let taken = 0;
  while (edits.take(at(ms))) taken += 1;
  return taken;
}

test("[LIP1] the client sends one PING when half a burst of any kind is unconfirmed, and no second before the PONG", () => {
  const paces = new ClientRates(LIMITS, at(0));
  for (let count = 0; count < 20; count++) paces.presence.takeTurn(at(0));
  expect(paces.takeArrivalRequest("frame")).toBe(false);
  paces.presence.takeTurn(at(0));
  expect([paces.takeArrivalRequest("frame"), paces.takeArrivalRequest("frame")]).toEqual([true, false]);
  paces.receivePingSent(1);
  for (let count = 0; count < 21; count++) paces.presence.takeTurn(at(0));
  expect(paces.takeArrivalRequest("frame")).toBe(false);
  paces.receivePong(1, at(100));
  expect(paces.takeArrivalRequest("frame")).toBe(true);
});

test("[LIP2] every PING covers all kinds, and the PONG of an earlier PING confirms nothing", () => {
  const paces = new ClientRates(LIMITS, at(0));
  expect(takeAll(paces, 0)).toBe(21);
  paces.receivePingSent(7);
  paces.receivePong(6, at(10_000));
  expect(takeAll(paces, 20_000)).toBe(0);
  paces.receivePong(7, at(20_000));
  expect(takeAll(paces, 30_000)).toBe(21);
});

test("[LIP3] the PONG of a later PING is accepted too, because that of the first may never arrive", () => {
  const paces = new ClientRates(LIMITS, at(0));
  takeAll(paces, 0);
  paces.receivePingSent(1);
  paces.receivePingSent(2);
  paces.receivePong(2, at(10_000));
  expect(takeAll(paces, 20_000)).toBe(21);
});

test("[LIP4] after a PONG only edits cause another PING, because other kinds may still use their turns", () => {
  const paces = new ClientRates({ ...LIMITS, controlBurst: 1 }, at(0));
  paces.receivePingSent(1);
  paces.controls.takeTurn(at(0));
  paces.receivePong(1, at(100));
  expect(paces.takeArrivalRequest("pong")).toBe(false);
  takeAll(paces, 100);
  expect([paces.takeArrivalRequest("pong"), paces.takeArrivalRequest("pong")]).toEqual([true, false]);
});
