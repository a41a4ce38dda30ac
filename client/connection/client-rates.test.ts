import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { LIMITS } from "../testing/model-connection.ts";
import { ClientRates } from "./client-rates.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;

function takeAll({ edits }: ClientRates, ms: number): number {
  let taken = 0;
  while (edits.take(at(ms))) taken += 1;
  return taken;
}

test("[LIP1] the client sends one PING when half a burst of any kind is unconfirmed, and no second before the PONG", () => {
  const rates = new ClientRates(LIMITS, at(0));
  for (let count = 0; count < 20; count++) rates.presence.takeTurn(at(0));
  expect(rates.takeArrivalRequest("frame")).toBe(false);
  rates.presence.takeTurn(at(0));
  expect([rates.takeArrivalRequest("frame"), rates.takeArrivalRequest("frame")]).toEqual([true, false]);
  rates.receivePingSent(1);
  for (let count = 0; count < 21; count++) rates.presence.takeTurn(at(0));
  expect(rates.takeArrivalRequest("frame")).toBe(false);
  rates.receivePong(1, at(100));
  expect(rates.takeArrivalRequest("frame")).toBe(true);
});

test("[LIP2] every PING covers all kinds, and the PONG of an earlier PING confirms nothing", () => {
  const rates = new ClientRates(LIMITS, at(0));
  expect(takeAll(rates, 0)).toBe(21);
  rates.receivePingSent(7);
  rates.receivePong(6, at(10_000));
  expect(takeAll(rates, 20_000)).toBe(0);
  rates.receivePong(7, at(20_000));
  expect(takeAll(rates, 30_000)).toBe(21);
});

test("[LIP3] the PONG of a later PING is accepted too, because that of the first may never arrive", () => {
  const rates = new ClientRates(LIMITS, at(0));
  takeAll(rates, 0);
  rates.receivePingSent(1);
  rates.receivePingSent(2);
  rates.receivePong(2, at(10_000));
  expect(takeAll(rates, 20_000)).toBe(21);
});

test("[LIP4] after a PONG only edits cause another PING, because other kinds may still use their turns", () => {
  const rates = new ClientRates({ ...LIMITS, controlBurst: 1 }, at(0));
  rates.receivePingSent(1);
  rates.controls.takeTurn(at(0));
  rates.receivePong(1, at(100));
  expect(rates.takeArrivalRequest("pong")).toBe(false);
  takeAll(rates, 100);
  expect([rates.takeArrivalRequest("pong"), rates.takeArrivalRequest("pong")]).toEqual([true, false]);
});
