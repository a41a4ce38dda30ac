import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";
import { FramePace } from "../connection/frame-pace.ts";
import { OwnPresence, type PresenceLine } from "./own-presence.ts";

const OPTIONS = { bytesMax: 200, fieldsMax: 4, perSecond: 20, viewportsPerSecond: 5 };
const field = (name: string, ...value: number[]): PresenceField => ({ name, value: Uint8Array.from(value) });
const at = (ms: number): Millis => ms as Millis;
const said = (fields: readonly PresenceField[]): string[] => fields.map(({ name, value }) => `${name}=${value}`);

test("[OPN1] the first change is said at once; what changes again before the next is said as it is then", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  expect(said(own.takeDue(at(0)))).toEqual(["a=1"]);
  own.set([field("a", 2), field("b", 1)]);
  own.set([field("a", 3)]);
  expect([said(own.takeDue(at(49))), own.dueAt(at(49))]).toEqual([[], 50]);
  expect(said(own.takeDue(at(50)))).toEqual(["a=3", "b=1"]);
  expect([own.takeDue(at(1_000)), own.dueAt(at(1_000))]).toEqual([[], undefined]);
});

test("[OPN1] what is the same as before is not said", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  own.takeDue(at(0));
  own.set([field("a", 1), field("never there")]);
  expect(own.dueAt(at(100))).toBeUndefined();
});

test("[OPN2] a field that is taken back is said to be empty, once", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  own.takeDue(at(0));
  own.set([field("a")]);
  expect(said(own.takeDue(at(100)))).toEqual(["a="]);
  own.sayAgain();
  expect(own.takeDue(at(200))).toEqual([]);
});

test("[OPN3] a viewport is said more seldom, and does not hold up the rest", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field(VIEWPORT, 1), field("a", 1)]);
  expect(said(own.takeDue(at(0)))).toEqual([`${VIEWPORT}=1`, "a=1"]);
  own.set([field(VIEWPORT, 2), field("a", 2)]);
  expect(said(own.takeDue(at(50)))).toEqual(["a=2"]);
  expect([own.takeDue(at(150)), own.dueAt(at(150))]).toEqual([[], 200]);
  expect(said(own.takeDue(at(200)))).toEqual([`${VIEWPORT}=2`]);
});

test("[OPN4] after a rejoin all is said again, at once; what the room still shows of an earlier time is taken back", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1), field("b", 2)]);
  own.takeDue(at(0));
  own.set([field("b")]);
  own.takeDue(at(100)); // Lost with the line.
  own.sayAgain();
  own.reconcile(
    new Map([
      ["a", Uint8Array.of(9)],
      ["b", Uint8Array.of(2)],
    ]),
  );
  expect(said(own.takeDue(at(101)))).toEqual(["a=1", "b="]);
});

test("[OPN5] too much is refused as a whole, and what was there stays", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  expect(own.set([field("b", 1), { name: "c", value: new Uint8Array(200) }])).toBe(false);
  expect([...own.values.keys()]).toEqual(["a"]);
  expect(own.set([{ name: "c", value: new Uint8Array(150) }])).toBe(true);
  expect(own.set(["d", "e", "f"].map((name) => field(name, 1)))).toBe(false);
});

test("[OPN7] a name that is taken back before it was said is not said, however many there were", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  own.takeDue(at(0));
  for (let name = 0; name < 1_000; name += 1) {
    own.set([field(`name${name}`, 1)]);
    own.set([field(`name${name}`)]);
  }
  own.set([field("a")]);
  own.sayAgain();
  expect(said(own.takeDue(at(100)))).toEqual(["a="]);
});

test("[OPN7] a name that the room shows of an earlier time is taken back there, even if it was set again in between", () => {
  const own = new OwnPresence(OPTIONS);
  own.reconcile(new Map([["a", Uint8Array.of(9)]]));
  own.set([field("a", 1)]);
  own.set([field("a")]);
  expect(said(own.takeDue(at(0)))).toEqual(["a="]);
});

/** All that was sent so far has arrived, and is known to have. */
function arriveAll(pace: FramePace, ms: number): void {
  pace.asked();
  pace.arrived(at(ms));
}

const lineOf = (pace: FramePace, bytesMax = 8_192): PresenceLine => ({ pace, bytesMax, fieldsMax: 64 });

test("[OPN8] rooms that share a pace say what is newest when their turn comes, each in its turn", () => {
  const pace = new FramePace({ burst: 1, perSecond: 1 / 0.9 }, at(0));
  const rooms = ["a", "b", "c"].map((name) => ({ name, own: new OwnPresence(OPTIONS) }));
  const told: string[] = [];
  for (const { own } of rooms) own.receiveLine(lineOf(pace));
  for (let ms = 0; ms <= 6_000; ms += 50) {
    for (const { name, own } of rooms) {
      own.set([field(name, ms / 50)]);
      told.push(...said(own.takeDue(at(ms))));
    }
    if (ms % 1_000 === 0) arriveAll(pace, ms);
  }
  expect(told).toEqual(["a=0", "b=20", "c=40", "a=60", "b=80", "c=100", "a=120"]);
});

test("[OPN8] a room that has nothing to say any more, or is left, gives its turn back", () => {
  const pace = new FramePace({ burst: 1, perSecond: 1 / 0.9 }, at(0));
  const [ann, ben] = [new OwnPresence(OPTIONS), new OwnPresence(OPTIONS)];
  for (const own of [ann, ben]) own.receiveLine(lineOf(pace));
  ann.set([field("a", 1)]);
  expect(said(ann.takeDue(at(0)))).toEqual(["a=1"]);
  arriveAll(pace, 0);
  for (let time = 0; time < 5; time += 1) {
    ann.set([field("b", 1)]);
    expect([ann.takeDue(at(100)), ann.dueAt(at(100))]).toEqual([[], 1_000]);
    ann.set([field("b")]);
    expect([ann.takeDue(at(100)), ann.dueAt(at(100))]).toEqual([[], undefined]);
  }
  ann.set([field("b", 2)]);
  ann.takeDue(at(100));
  ann.giveTurnBack();
  ben.set([field("c", 1)]);
  expect([ben.takeDue(at(100)), ben.dueAt(at(100))]).toEqual([[], 1_000]);
});

test("[OPN9] more than a server takes is not said to it until it is less", () => {
  const own = new OwnPresence(OPTIONS);
  for (const name of ["a", "b", "c"]) own.set([{ name, value: new Uint8Array(40).fill(1) }]);
  own.receiveLine(lineOf(new FramePace({ burst: 60, perSecond: 30 }, at(0)), 50));
  expect([own.isTooLarge, own.bytesMax, own.takeDue(at(0)), own.dueAt(at(0))]).toEqual([true, 50, [], undefined]);
  expect([own.set([field("d", 1)]), own.set([field("a")]), own.isTooLarge]).toEqual([false, true, true]);
  expect([own.set([field("b")]), own.isTooLarge]).toEqual([true, false]);
  expect(own.takeDue(at(0)).map(({ name }) => name)).toEqual(["c"]);
});

test("[OPN10] what was passed over is said again as it is now, and what was taken back is taken back again", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1), field("b", 1), field("c", 1)]);
  own.takeDue(at(0));
  own.set([field("b")]);
  own.takeDue(at(100));
  own.set([field("a", 2)]);
  own.receivePassedOver();
  own.set([field("b", 2)]);
  own.set([field("b")]);
  expect(own.dueAt(at(101)), "no faster than it may").toBe(150);
  expect(said(own.takeDue(at(150))).toSorted()).toEqual(["a=2", "b=", "c=1"]);
  expect(own.dueAt(at(1_000))).toBeUndefined();
});

const moment = fc.record({
  afterMs: fc.integer({ min: 0, max: 120 }),
  does: fc.oneof(
    fc.record({ kind: fc.constant("set" as const), name: fc.constantFrom("a", "b", VIEWPORT), value: fc.option(fc.nat(3)) }),
    fc.constant({ kind: "rejoin" as const }),
    fc.record({ kind: fc.constant("pace" as const), perSecond: fc.integer({ min: 1, max: 30 }) }),
  ),
});

test("[OPN6] however it changes and whenever the line is lost, in the end the room shows what is set, and was never told faster than it allows", () => {
  fc.assert(
    fc.property(fc.array(moment, { maxLength: 60 }), (moments) => {
      const own = new OwnPresence(OPTIONS);
      const shown = new Map<string, number>();
      let [now, perSecond, saidAt] = [0, OPTIONS.perSecond, -Infinity];
      const hear = (): void => {
        const fields = own.takeDue(at(now));
        if (fields.length === 0) return;
        expect(now - saidAt).toBeGreaterThanOrEqual(1000 / perSecond);
        saidAt = now;
        for (const { name, value } of fields) {
          if (value.byteLength === 0) shown.delete(name);
          else shown.set(name, value[0]!);
        }
      };
      const until = (end: number): void => {
        for (let due = own.dueAt(at(now)); due !== undefined && due <= end; due = own.dueAt(at(now))) {
          now = Math.max(now, due);
          hear();
        }
        now = Math.max(now, end);
      };
      for (const { afterMs, does } of moments) {
        until(now + afterMs);
        if (does.kind === "set") own.set([does.value === null ? field(does.name) : field(does.name, does.value)]);
        if (does.kind === "pace") own.receivePace((perSecond = does.perSecond));
        if (does.kind === "rejoin") {
          own.sayAgain();
          own.reconcile(new Map([...shown].map(([name, value]) => [name, Uint8Array.of(value)])));
          saidAt = -Infinity;
        }
        hear();
      }
      until(now + 5_000);
      expect(shown).toEqual(new Map([...own.values].map(([name, value]) => [name, value[0]])));
    }),
  );
});
