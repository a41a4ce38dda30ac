import { expect, test } from "vitest";

import { endOfTurn, eventLoopDelay, turnEnd, untilTurnEnds } from "./event-loop.ts";

test("callers that wait for the end of a turn run in order without a break, and the work that they cause runs in the next turn", async () => {
  const ran: string[] = [];
  const later = endOfTurn();
  for (const name of ["one", "two", "three"]) {
    later(() => {
      ran.push(name);
      queueMicrotask(() => ran.push(`after ${name}`));
      if (name === "one") later(() => ran.push("next turn"));
    });
  }
  expect(ran).toEqual([]);
  await new Promise(setImmediate);
  expect(ran).toEqual(["one", "two", "three", "after one", "after two", "after three"]);
  await new Promise(setImmediate);
  expect(ran.at(-1)).toBe("next turn");
});

test("[EOT1] the last work of a turn runs after all work that the turn added", async () => {
  const ran: string[] = [];
  const { endOfTurn, lastOfTurn } = turnEnd();
  const write = (): void => lastOfTurn(() => ran.push(`written after ${ran.length}`));
  write();
  endOfTurn(() => ran.push("one"));
  endOfTurn(() => {
    ran.push("two");
    endOfTurn(() => ran.push("next turn"));
  });
  await new Promise(setImmediate);
  expect(ran).toEqual(["one", "two", "written after 2"]);
  lastOfTurn(write); // Added after the turn had ended, so it runs in the next turn.
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(ran.slice(3)).toEqual(["next turn", "written after 4"]);
});

test("[EOT2] all callers that await the end of a turn continue in a row; a caller that awaits it then waits for the next turn", async () => {
  const ran: string[] = [];
  const turnEnds = untilTurnEnds(endOfTurn());
  const wait = async (name: string): Promise<void> => {
    await turnEnds();
    ran.push(name);
    queueMicrotask(() => ran.push(`after ${name}`));
  };
  void wait("one").then(() => wait("one again"));
  void wait("two");
  expect(ran).toEqual([]);
  await new Promise(setImmediate);
  expect(ran).toEqual(["one", "two", "after one", "after two"]);
  await new Promise(setImmediate);
  expect(ran.at(-1)).toBe("after one again");
});

test("[ELD1] a loop whose turns are longer than the interval of the measurements is late, not on time", async () => {
  const delay = eventLoopDelay();
  const delays: number[] = [];
  for (let turn = 0; turn < 4; turn++) {
    const end = performance.now() + 200;
    while (performance.now() < end);
    delays.push(delay.measure());
    await new Promise(setImmediate);
  }
  delay.stop();
  expect(Math.min(...delays)).toBeGreaterThan(0);
});
