import { expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import type { Millis } from "../../shared/ids.ts";
import { FairForwarding } from "./fair-forwarding.ts";

const OPTIONS = { forwardsPerSecond: 1_000, roomForwardsPerSecondMin: 25 };
const INTERVAL_MS = 1_000 / OPTIONS.roomForwardsPerSecondMin;
const STEP_MS = 5;
const CREDIT = 10;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const at = (ms: number): Millis => ms as Millis;

type Arrival = { readonly ms: number; readonly room: string; readonly bytes: number };
/** `waitedMs`: how long its oldest edit waited. */
type Forwarded = { readonly ms: number; readonly room: string; readonly edits: number; readonly waitedMs: number };

/** Lets the edits arrive, ends a turn at each arrival and at each time that is due, and returns the messages. */
function forward(arrivals: readonly Arrival[], untilMs: number): Forwarded[] {
  const fair = new FairForwarding<string>(OPTIONS);
  const waiting = new Map<string, { since: number; edits: number }>();
  const messages: Forwarded[] = [];
  let dueAt: number | undefined;
  const endTurn = (ms: number): void => {
    const turn = fair.takeDue(at(ms));
    dueAt = turn.dueAt;
    for (const room of turn.rooms) {
      const { since, edits } = waiting.get(room)!;
      messages.push({ ms, room, edits, waitedMs: ms - since });
      waiting.delete(room);
    }
  };
  for (const { ms, room, bytes } of [...arrivals, { ms: untilMs, room: "last", bytes: 0 }]) {
    while (dueAt !== undefined && dueAt <= ms) endTurn(dueAt);
    fair.receiveEdit(room, bytes);
    const before = waiting.get(room);
    if (before === undefined) waiting.set(room, { since: ms, edits: 1 });
    else before.edits += 1;
    endTurn(ms);
  }
  while (dueAt !== undefined) endTurn(dueAt);
  expect(
    messages.reduce((sum, { edits }) => sum + edits, 0),
    "every edit is forwarded once",
  ).toBe(arrivals.length + 1);
  return messages;
}

/** Rooms whose edits are at least `gapMs` apart, and up to twice as far. */
function edits(prng: Prng, rooms: readonly string[], gapMs: number, untilMs: number, bytesMax = 100): Arrival[] {
  return rooms.flatMap((room) => {
    const own: Arrival[] = [];
    for (let ms = prng.unit() * gapMs; ms < untilMs; ms += gapMs * (1 + prng.unit())) own.push({ ms, room, bytes: prng.below(bytesMax) });
    return own;
  });
}

const inOrder = (arrivals: readonly Arrival[]): Arrival[] => [...arrivals].sort((a, b) => a.ms - b.ms);
const names = (kind: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${kind}${index}`);

test("[FWD1] rooms within their share are forwarded in the turn in which their edits arrive, in that order", () => {
  const fair = new FairForwarding<string>(OPTIONS);
  fair.receiveEdit("plan", 10);
  fair.receiveEdit("notes", 10);
  fair.receiveEdit("plan", 10);
  expect(fair.takeDue(at(0))).toEqual({ rooms: ["plan", "notes"], gathered: 0, dueAt: undefined });
  expect(fair.takeDue(at(1))).toEqual({ rooms: [], gathered: 0, dueAt: undefined });
});

test("[FWD2] a room over its share waits until its last message is paid, and then sends all its edits", () => {
  const fair = new FairForwarding<string>({ forwardsPerSecond: 25, roomForwardsPerSecondMin: 25 });
  for (let message = 1; message <= CREDIT + 1; message++) {
    fair.receiveEdit("hot", 0);
    expect(fair.takeDue(at(0)).rooms, `message ${message}`).toEqual(["hot"]);
  }
  fair.receiveEdit("hot", 0);
  fair.receiveEdit("calm", 0);
  expect(fair.takeDue(at(1))).toEqual({ rooms: ["calm"], gathered: 0, dueAt: at(40) });
  fair.receiveEdit("hot", 0);
  expect(fair.takeDue(at(39.9))).toEqual({ rooms: [], gathered: 0, dueAt: at(40) });
  expect(fair.takeDue(at(40))).toEqual({ rooms: ["hot"], gathered: 1, dueAt: undefined });
  expect(fair.takeDue(at(80)).rooms).toEqual([]);
});

test("[FWD3] no edit waits longer than the interval of the smallest share and a step, whatever all rooms send", () => {
  for (const seed of SEEDS) {
    const prng = new Prng(seed);
    const hot = edits(prng, names("hot", 1 + prng.below(5)), 0.5 + prng.unit() * 5, 1_000, 600_000);
    const late = edits(prng, names("late", prng.below(200)), 50, 500).map((edit) => ({ ...edit, ms: edit.ms + 500 })); // Smaller shares from now on.
    const waits = forward(inOrder([...hot, ...late]), 1_000).map(({ waitedMs }) => waitedMs);
    expect(Math.max(...waits)).toBeLessThanOrEqual(INTERVAL_MS + STEP_MS);
  }
});

test("[FWD4] a room below the smallest share never waits, whatever other rooms send", () => {
  for (const seed of SEEDS) {
    const prng = new Prng(seed);
    const calm = edits(prng, names("calm", 1 + prng.below(100)), INTERVAL_MS + 1, 1_000);
    const hot = edits(prng, names("hot", 1 + prng.below(10)), 0.5, 1_000, 100_000);
    const waits = forward(inOrder([...calm, ...hot]), 1_000).flatMap(({ room, waitedMs }) => (room.startsWith("calm") ? waitedMs : []));
    expect(Math.max(...waits)).toBe(0);
  }
});

test("[FWD5] busy rooms send as many messages as their share, and none sends more", () => {
  for (const seed of SEEDS) {
    const prng = new Prng(seed);
    const rooms = names("hot", 2 + prng.below(40));
    const messages = forward(inOrder(edits(prng, rooms, 1, 2_000)), 2_000);
    const [from, until] = [500, 2_000]; // All rooms are active, and have no credit left.
    const share = Math.max(OPTIONS.roomForwardsPerSecondMin, OPTIONS.forwardsPerSecond / rooms.length);
    const shareOfTime = ((until - from) * Math.min(share, 1_000 / STEP_MS)) / 1_000;
    for (const name of rooms) {
      const { length } = messages.filter(({ room, ms }) => room === name && ms >= from && ms < until);
      expect(length, `${rooms.length} rooms`).toBeLessThanOrEqual(((until - from) * share) / 1_000 + 1);
      expect(length, `${rooms.length} rooms`).toBeGreaterThanOrEqual(0.8 * shareOfTime - 1);
    }
  }
});

test("[FWD6] a room without active neighbours has the share of all", () => {
  const waits = forward(edits(new Prng(7), ["alone"], 1.05, 1_000), 1_000).map(({ waitedMs }) => waitedMs);
  expect(Math.max(...waits)).toBe(0);
});

test("[FWD7] bytes count: at the same number of edits, only the room with large edits waits", () => {
  const waitOf = (bytes: number): number => {
    const calm = edits(new Prng(1), names("calm", 15), 300, 3_000);
    const hot = Array.from({ length: 100 }, (_, index) => ({ ms: index * 30, room: "hot", bytes }));
    const waits = forward(inOrder([...calm, ...hot]), 3_000).flatMap(({ room, waitedMs }) => (room === "hot" ? waitedMs : []));
    return Math.max(...waits);
  };
  expect(waitOf(1_000)).toBe(0);
  expect(waitOf(64 * 1024)).toBeGreaterThan(5);
});

test("[FWD8] when the gateway stops, all waiting rooms are forwarded", () => {
  const fair = new FairForwarding<string>({ forwardsPerSecond: 25, roomForwardsPerSecondMin: 25 });
  for (let turn = 0; turn <= CREDIT + 1; turn++) {
    fair.receiveEdit("held", 1);
    fair.takeDue(at(0));
  }
  fair.receiveEdit("fresh", 1);
  expect(fair.takeAll()).toEqual(["held", "fresh"]);
  expect(fair.takeDue(at(100))).toEqual({ rooms: [], gathered: 0, dueAt: undefined });
});
