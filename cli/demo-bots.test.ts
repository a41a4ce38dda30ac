import { expect, test } from "vitest";

import type { RoomId } from "../shared/ids.ts";
import type { RouteRequest } from "../gateway/http/requests.ts";
import type { BotOrder } from "./bots/worker.ts";
import { BOTS_MAX, type DemoBots, demoBots } from "./demo-bots.ts";
import { demoRoutes } from "./demo.ts";

const ROOM = "notes" as RoomId;

function bots(): { bots: DemoBots; orders: string[]; timers: (() => void)[] } {
  const orders: string[] = [];
  const timers: (() => void)[] = [];
  const after = (_: number, run: () => void) => {
    timers.push(run);
    return () => void timers.splice(timers.indexOf(run), 1);
  };
  const send = ({ room, bots: sent }: BotOrder): void => void orders.push(`${sent.length} in ${room}`);
  return { bots: demoBots({ jwtSecret: "x".repeat(32), url: () => "ws://h", send, after, stop: async () => {} }), orders, timers };
}

test("[BOT3] a room has the requested number of bots, and none after the time limit", async () => {
  const { bots: demoBots, orders, timers } = bots();
  expect([await demoBots.set(ROOM, 10), await demoBots.set(ROOM, 60), await demoBots.set(ROOM, 0)]).toEqual([10, 60, 0]);
  expect([orders, timers.length]).toEqual([["10 in notes", "60 in notes", "0 in notes"], 0]);
  await demoBots.set(ROOM, 10);
  timers[0]!();
  expect(await demoBots.set("other" as RoomId, BOTS_MAX)).toBe(BOTS_MAX);
  expect(orders.slice(3)).toEqual(["10 in notes", "0 in notes", "300 in other"]);
  await demoBots.stop();
  expect(timers).toHaveLength(0);
});

test("[BOT3] the total number of bots never exceeds the number that one machine can run", async () => {
  const { bots: demoBots, orders } = bots();
  await demoBots.set(ROOM, 200);
  expect([await demoBots.set("other" as RoomId, 101), await demoBots.set("other" as RoomId, 100), orders.length]).toEqual([
    undefined,
    100,
    2,
  ]);
});

test.each([
  ["?room=notes&count=10", "same-origin", 200],
  ["?room=notes&count=301", "same-origin", 400],
  ["?room=notes&count=-1", "same-origin", 400],
  ["?room=notes&count=ten", "same-origin", 400],
  ["?room=notes", "same-origin", 400],
  ["?room=%00&count=1", "same-origin", 400],
  ["?room=notes&count=10", "cross-site", 403],
])("[BOT4] the answer to %s from '%s' has status %i", async (search, site, status) => {
  const route = demoRoutes({ jwtSecret: "x".repeat(32), operatorSecret: "", bots: bots().bots }).find(({ path }) => path === "/demo/bots")!;
  const question: RouteRequest = {
    path: "/demo/bots",
    parameters: [],
    query: new URLSearchParams(search),
    header: (name) => ({ "sec-fetch-site": site, "host": "localhost" })[name] ?? "",
    address: undefined,
    body: new Uint8Array(),
    signal: new AbortController().signal,
  };
  expect([route.method, (await route.answer(question)).status]).toEqual(["post", status]);
});
