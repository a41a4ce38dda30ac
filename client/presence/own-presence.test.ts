import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { type PresenceField, VIEWPORT } from "../../shared/wire/presence.ts";
import { FrameSendRate } from "../connection/client-rates.ts";
import { OwnPresence, type PresenceLimits } from "./room-presence.ts";

const OPTIONS = { bytesMax: 200, fieldsMax: 4, perSecond: 20, viewportsPerSecond: 5 };
const field = (name: string, ...value: number[]): PresenceField => ({ name, value: Uint8Array.from(value) });
const at = (ms: number): Millis => ms as Millis;
const fieldsOf = (fields: readonly PresenceField[]): string[] => fields.map(({ name, value }) => `${name}=${value}`);

test("[OPN1] the first change is sent at once; a field that changes again before the next frame is sent with its latest value", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  expect(fieldsOf(own.takeDue(at(0)))).toEqual(["a=1"]);
  own.set([field("a", 2), field("b", 1)]);
  own.set([field("a", 3)]);
  expect([fieldsOf(own.takeDue(at(49))), own.dueAt(at(49))]).toEqual([[], 50]);
  expect(fieldsOf(own.takeDue(at(50)))).toEqual(["a=3", "b=1"]);
  expect([own.takeDue(at(1_000)), own.dueAt(at(1_000))]).toEqual([[], undefined]);
});

test("[OPN1] an unchanged value is not sent", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  own.takeDue(at(0));
  own.set([field("a", 1), field("never there")]);
  expect(own.dueAt(at(100))).toBeUndefined();
});

test("[OPN2] a removed field is sent as empty, once", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  own.takeDue(at(0));
  own.set([field("a")]);
  expect(fieldsOf(own.takeDue(at(100)))).toEqual(["a="]);
  own.sendAgain();
  expect(own.takeDue(at(200))).toEqual([]);
});

test("[OPN3] a viewport is sent at a lower rate, and does not delay other fields", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field(VIEWPORT, 1), field("a", 1)]);
  expect(fieldsOf(own.takeDue(at(0)))).toEqual([`${VIEWPORT}=1`, "a=1"]);
  own.set([field(VIEWPORT, 2), field("a", 2)]);
  expect(fieldsOf(own.takeDue(at(50)))).toEqual(["a=2"]);
  expect([own.takeDue(at(150)), own.dueAt(at(150))]).toEqual([[], 200]);
  expect(fieldsOf(own.takeDue(at(200)))).toEqual([`${VIEWPORT}=2`]);
});

test("[OPN4] after a rejoin all current fields are sent at once; a field that the client removed but the room still shows is removed there", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1), field("b", 2)]);
  own.takeDue(at(0));
  own.set([field("b")]);
  own.takeDue(at(100)); // Lost with the connection.
  own.sendAgain();
  own.reconcile(
    new Map([
      ["a", Uint8Array.of(9)],
      ["b", Uint8Array.of(2)],
    ]),
  );
  expect(fieldsOf(own.takeDue(at(101)))).toEqual(["a=1", "b="]);
});

test("[OPN5] a value over the limit is rejected as a whole, and the earlier value stays", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  expect(own.set([field("b", 1), { name: "c", value: new Uint8Array(200) }])).toBe(false);
  expect([...own.values.keys()]).toEqual(["a"]);
  expect(own.set([{ name: "c", value: new Uint8Array(150) }])).toBe(true);
  expect(own.set(["d", "e", "f"].map((name) => field(name, 1)))).toBe(false);
});

test("[OPN5] more fields than the limit are rejected as a whole, even if they have fewer bytes than before", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([{ name: "large", value: new Uint8Array(150) }]);
  expect(own.set([field("large"), ...["a", "b", "c", "d", "e"].map((name) => field(name, 1))])).toBe(false);
  expect([...own.values.keys()]).toEqual(["large"]);
});

test("[OPN7] a field that is removed before it was sent is never sent, however many there were", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  own.takeDue(at(0));
  for (let name = 0; name < 1_000; name += 1) {
    own.set([field(`name${name}`, 1)]);
    own.set([field(`name${name}`)]);
  }
  own.set([field("a")]);
  own.sendAgain();
  expect(fieldsOf(own.takeDue(at(100)))).toEqual(["a="]);
});

test("[OPN7] a field that the room shows from before is removed there, even if it was set again in between", () => {
  const own = new OwnPresence(OPTIONS);
  own.reconcile(new Map([["a", Uint8Array.of(9)]]));
  own.set([field("a", 1)]);
  own.set([field("a")]);
  expect(fieldsOf(own.takeDue(at(0)))).toEqual(["a="]);
});

/** All frames sent so far have arrived and are confirmed. */
function arriveAll(rate: FrameSendRate, ms: number): void {
  rate.markAsked();
  rate.receiveArrival(at(ms));
}

const limitsOf = (rate: FrameSendRate, bytesMax = 8_192): PresenceLimits => ({ rate, bytesMax, fieldsMax: 64 });

test("[OPN8] rooms that share a rate send their latest values, each in its turn", () => {
  const rate = new FrameSendRate({ burst: 1, perSecond: 1 / 0.9 }, at(0));
  const rooms = ["a", "b", "c"].map((name) => ({ name, own: new OwnPresence(OPTIONS) }));
  const received: string[] = [];
  for (const { own } of rooms) own.receiveConnection(limitsOf(rate));
  for (let ms = 0; ms <= 6_000; ms += 50) {
    for (const { name, own } of rooms) {
      own.set([field(name, ms / 50)]);
      received.push(...fieldsOf(own.takeDue(at(ms))));
    }
    if (ms % 1_000 === 0) arriveAll(rate, ms);
  }
  expect(received).toEqual(["a=0", "b=20", "c=40", "a=60", "b=80", "c=100", "a=120"]);
});

test("[OPN8] a room returns its turn when it has nothing to send or is left", () => {
  const rate = new FrameSendRate({ burst: 1, perSecond: 1 / 0.9 }, at(0));
  const [ann, ben] = [new OwnPresence(OPTIONS), new OwnPresence(OPTIONS)];
  for (const own of [ann, ben]) own.receiveConnection(limitsOf(rate));
  ann.set([field("a", 1)]);
  expect(fieldsOf(ann.takeDue(at(0)))).toEqual(["a=1"]);
  arriveAll(rate, 0);
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

test("[OPN9] presence over the server's limit is not sent until it fits", () => {
  const own = new OwnPresence(OPTIONS);
  for (const name of ["a", "b", "c"]) own.set([{ name, value: new Uint8Array(40).fill(1) }]);
  own.receiveConnection(limitsOf(new FrameSendRate({ burst: 60, perSecond: 30 }, at(0)), 50));
  expect([own.isTooLarge, own.bytesMax, own.takeDue(at(0)), own.dueAt(at(0))]).toEqual([true, 50, [], undefined]);
  expect([own.set([field("d", 1)]), own.set([field("a")]), own.isTooLarge]).toEqual([false, true, true]);
  expect([own.set([field("b")]), own.isTooLarge]).toEqual([true, false]);
  expect(own.takeDue(at(0)).map(({ name }) => name)).toEqual(["c"]);
});

test("[OPN10] fields that the server skipped are sent again with their latest value, and removals are sent again", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1), field("b", 1), field("c", 1)]);
  own.takeDue(at(0));
  own.set([field("b")]);
  own.takeDue(at(100));
  own.set([field("a", 2)]);
  own.receivePresenceAgain();
  own.set([field("b", 2)]);
  own.set([field("b")]);
  expect(own.dueAt(at(101)), "no faster than it may").toBe(150);
  expect(fieldsOf(own.takeDue(at(150))).toSorted()).toEqual(["a=2", "b=", "c=1"]);
  expect(own.dueAt(at(1_000))).toBeUndefined();
});

test("[OPN11] a removal of this connection that the room does not show yet is not sent a second time", () => {
  const own = new OwnPresence(OPTIONS);
  own.set([field("a", 1)]);
  own.takeDue(at(0));
  own.set([field("a")]);
  own.takeDue(at(100));
  own.reconcile(new Map([["a", Uint8Array.of(1)]]));
  expect(own.dueAt(at(101))).toBeUndefined();
});

const moment = fc.record({
  afterMs: fc.integer({ min: 0, max: 120 }),
  does: fc.oneof(
    fc.record({ kind: fc.constant("set" as const), name: fc.constantFrom("a", "b", VIEWPORT), value: fc.option(fc.nat(3)) }),
    fc.constant({ kind: "rejoin" as const }),
    fc.record({ kind: fc.constant("rate" as const), perSecond: fc.integer({ min: 1, max: 30 }) }),
  ),
});

test("[OPN6] after any changes and lost connections the room shows the current fields, and never received frames above the rate", () => {
  fc.assert(
    fc.property(fc.array(moment, { maxLength: 60 }), (moments) => {
      const own = new OwnPresence(OPTIONS);
      const shown = new Map<string, number>();
      let [now, perSecond, sentAt] = [0, OPTIONS.perSecond, -Infinity];
      const receiveDue = (): void => {
        const fields = own.takeDue(at(now));
        if (fields.length === 0) return;
        expect(now - sentAt).toBeGreaterThanOrEqual(1000 / perSecond);
        sentAt = now;
        for (const { name, value } of fields) {
          if (value.byteLength === 0) shown.delete(name);
          else shown.set(name, value[0]!);
        }
      };
      const until = (end: number): void => {
        for (let due = own.dueAt(at(now)); due !== undefined && due <= end; due = own.dueAt(at(now))) {
          now = Math.max(now, due);
          receiveDue();
        }
        now = Math.max(now, end);
      };
      for (const { afterMs, does } of moments) {
        until(now + afterMs);
        if (does.kind === "set") own.set([does.value === null ? field(does.name) : field(does.name, does.value)]);
        if (does.kind === "rate") own.receiveRate((perSecond = does.perSecond));
        if (does.kind === "rejoin") {
          own.sendAgain();
          own.reconcile(new Map([...shown].map(([name, value]) => [name, Uint8Array.of(value)])));
          sentAt = -Infinity;
        }
        receiveDue();
      }
      until(now + 5_000);
      expect(shown).toEqual(new Map([...own.values].map(([name, value]) => [name, value[0]])));
    }),
  );
});

test("[OPN12] presence of exactly the maximum of bytes and fields is accepted", () => {
  const [byBytes, byCount] = [new OwnPresence(OPTIONS), new OwnPresence(OPTIONS)];
  const sized = (bytes: number): PresenceField => ({ name: "a", value: new Uint8Array(bytes) });
  expect([byBytes.set([sized(196)]), byBytes.set([sized(195)])]).toEqual([false, true]); // A name and four bytes more.
  const fields = ["a", "b", "c", "d", "e"].map((name) => field(name, 1));
  expect([byCount.set(fields), byCount.set(fields.slice(1))]).toEqual([false, true]);
});

test("[OPN13] after a frame that came too fast, only the newest removals are repeated, so that any number of names costs no memory", () => {
  const own = new OwnPresence(OPTIONS);
  for (let index = 0; index < 10; index++) {
    own.set([field(`f${index}`, 1)]);
    own.takeDue(at(200 * index));
    own.set([field(`f${index}`)]);
    own.takeDue(at(200 * index + 100));
  }
  own.receivePresenceAgain();
  expect(fieldsOf(own.takeDue(at(10_000)))).toEqual(["f6=", "f7=", "f8=", "f9="]);
});
