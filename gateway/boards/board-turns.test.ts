import { expect, test } from "vitest";

import type { Millis, TenantId } from "../../shared/ids.ts";
import { BoardTurns } from "./board-turns.ts";

const at = (ms: number) => ms as Millis;
const [acme, other] = ["acme", "other"] as [TenantId, TenantId];

test("[BTU1] a tenant above its rate waits until its bytes are paid, and other tenants do not", () => {
  const turns = new BoardTurns<string>({ burst: 100, perSecond: 10 });
  expect(turns.mayShow(acme, "a", at(0))).toBe(true);
  turns.spend(acme, 150, at(0));
  expect([turns.mayShow(acme, "a", at(1)), turns.mayShow(other, "o", at(1))]).toEqual([false, true]);
  expect([...turns.takeDue(at(4_000))]).toEqual([]);
  expect([...turns.takeDue(at(5_000))]).toEqual(["a"]);
  expect([...turns.takeDue(at(5_000))]).toEqual([]);
});

test("[BTU2] boards that wait are taken in order, each once, and none overtakes them", () => {
  const turns = new BoardTurns<string>({ burst: 100, perSecond: 10 });
  turns.spend(acme, 150, at(0));
  for (const board of ["a", "b", "c", "a"]) turns.mayShow(acme, board, at(0));
  const taken: string[] = [];
  for (const board of turns.takeDue(at(5_500))) {
    taken.push(board);
    turns.spend(acme, 4, at(5_500));
  }
  expect(taken, "5 bytes are left for the first two").toEqual(["a", "b"]);
  expect(turns.mayShow(acme, "a", at(60_000)), "while c waits").toBe(false);
  expect([...turns.takeDue(at(60_000))]).toEqual(["c", "a"]);
});

test("[BTU3] a board that nobody watches any more does not wait", () => {
  const turns = new BoardTurns<string>({ burst: 100, perSecond: 10 });
  turns.spend(acme, 101, at(0));
  turns.mayShow(acme, "a", at(0));
  turns.forget(acme, "a");
  expect([...turns.takeDue(at(60_000))]).toEqual([]);
  expect(turns.mayShow(acme, "b", at(60_000))).toBe(true);
});
