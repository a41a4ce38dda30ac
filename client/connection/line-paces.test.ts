import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { LIMITS } from "../testing/model-server.ts";
import { LinePaces } from "./line-paces.ts";

const at = (ms: number): Millis => (1_000_000 + ms) as Millis;

function takeAll({ edits }: LinePaces, ms: number): number {
  let taken = 0;
  while (edits.take(at(ms))) taken += 1;
  return taken;
}

test("[LIP1] half a burst of anything on its way asks for a PING, once until it is answered", () => {
  const paces = new LinePaces(LIMITS, at(0));
  for (let count = 0; count < 20; count++) paces.presence.takeTurn(at(0));
  expect(paces.takeAsking("frame")).toBe(false);
  paces.presence.takeTurn(at(0));
  expect([paces.takeAsking("frame"), paces.takeAsking("frame")]).toEqual([true, false]);
  paces.pinged(1);
  for (let count = 0; count < 21; count++) paces.presence.takeTurn(at(0));
  expect(paces.takeAsking("frame")).toBe(false);
  paces.receivePong(1, at(100));
  expect(paces.takeAsking("frame")).toBe(true);
});

test("[LIP2] any PING asks for all kinds, and a PONG of an earlier one says nothing", () => {
  const paces = new LinePaces(LIMITS, at(0));
  expect(takeAll(paces, 0)).toBe(21);
  paces.pinged(7);
  paces.receivePong(6, at(10_000));
  expect(takeAll(paces, 20_000)).toBe(0);
  paces.receivePong(7, at(20_000));
  expect(takeAll(paces, 30_000)).toBe(21);
});

test("[LIP3] the PONG of a later PING is an answer too, as that of the first may never come", () => {
  const paces = new LinePaces(LIMITS, at(0));
  takeAll(paces, 0);
  paces.pinged(1);
  paces.pinged(2);
  paces.receivePong(2, at(10_000));
  expect(takeAll(paces, 20_000)).toBe(21);
});

test("[LIP4] behind a PONG only edits ask again, as turns of the others may be still to come", () => {
  const paces = new LinePaces({ ...LIMITS, controlBurst: 1 }, at(0));
  paces.pinged(1);
  paces.controls.takeTurn(at(0));
  paces.receivePong(1, at(100));
  expect(paces.takeAsking("pong")).toBe(false);
  takeAll(paces, 100);
  expect([paces.takeAsking("pong"), paces.takeAsking("pong")]).toEqual([true, false]);
});
