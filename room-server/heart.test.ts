import { expect, test } from "vitest";

import type { ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import type { Millis, ServerId, UnixMillis } from "../shared/ids.ts";
import { Membership } from "../shared/membership.ts";
import { beatHeart, listenToPeers } from "./heart.ts";
import type { Peers } from "./ports.ts";

const beat = (server: string): ServerHeartbeat => ({ server: server as ServerId, rooms: 0, draining: false, time: 0 as UnixMillis });

function line() {
  let now = 0;
  let timers: { at: number; run: () => void }[] = [];
  const clock = {
    now: () => now as Millis,
    wallNow: () => now as UnixMillis,
    after: (delayMs: number, run: () => void) => {
      const timer = { at: now + delayMs, run };
      timers.push(timer);
      return () => void (timers = timers.filter((other) => other !== timer));
    },
  };
  const said: ServerHeartbeat[] = [];
  let hear: (heartbeat: ServerHeartbeat) => void = () => {};
  const peers: Peers = { sayAlive: (heartbeat) => void said.push(heartbeat), onHeartbeat: (receive) => (hear = receive) };
  const pass = (ms: number): void => {
    for (const end = now + ms; now < end; now += 10) {
      const due = timers.filter(({ at }) => at <= now);
      timers = timers.filter((timer) => !due.includes(timer));
      for (const { run } of due) run();
    }
  };
  return { clock, peers, said, pass, hear: (server: string) => hear(beat(server)), timers: () => timers.length };
}
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test("[HRT1] however many servers come and go, only those that live are remembered", () => {
  const { clock, peers, pass, hear, timers } = line();
  const membership = new Membership({ silenceMsMax: 750 });
  const stop = listenToPeers(membership, peers, { clock, log });
  for (let come = 0; come < 1_000; come++) {
    hear("stays");
    hear(`rs-${come}`);
    pass(100);
  }
  expect(membership.size).toBeLessThan(12);
  pass(700);
  hear("stays");
  pass(100);
  expect(membership.size).toBe(1);
  expect(membership.isLive("stays" as ServerId, clock.now())).toBe(true);
  stop();
  expect(timers()).toBe(0);
});

test("[HRT2] it says at a steady pace how it is, until stopped", () => {
  const { clock, peers, said, pass } = line();
  let rooms = 0;
  const stop = beatHeart(() => ({ server: "one" as ServerId, rooms: rooms++, draining: false }), peers, clock, 250);
  pass(1_000);
  expect(said.map((heartbeat) => [heartbeat.time, heartbeat.rooms])).toEqual([[0, 0], [250, 1], [500, 2], [750, 3]]);
  stop();
  pass(1_000);
  expect(said.length).toBe(4);
});
