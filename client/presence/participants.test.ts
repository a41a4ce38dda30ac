/** The merge of presence deltas, by examples and against a model of the room. */

import fc from "fast-check";
import { expect, test } from "vitest";

import type { ClientId, UserId } from "../../shared/ids.ts";
import type { PresenceDelta } from "../../shared/wire/presence.ts";
import { ModelPresence } from "../testing/model-presence.ts";
import { Participants } from "./participants.ts";
import { fieldsOf } from "./presence-fields.ts";

const [ANN, BOB, CID] = ["ann", "bob", "cid"].map((name) => name.padEnd(16, "_") as ClientId) as [ClientId, ClientId, ClientId];

function seenBy(participants: Participants): Record<string, unknown> {
  return Object.fromEntries(
    [...participants.all].map(([client, { name, role, cursor, fields }]) => [client, { name, role, cursor, fields }]),
  );
}

test("[PAR1] participants arrive with their identity and fields, and leave", () => {
  const room = new ModelPresence();
  const participants = new Participants();
  room.enter(ANN, { name: "Ann", user: "u1" as UserId });
  room.show(ANN, fieldsOf({ cursor: { x: 1.4, y: -2 }, colour: "red", list: [1, { a: null }] }));
  expect(participants.receiveDelta(room.snapshot)).toEqual({ entered: [ANN], changed: [], left: [], roster: true });
  expect(participants.all.get(ANN)).toEqual({
    client: ANN,
    user: "u1",
    name: "Ann",
    role: "editor",
    canWrite: true,
    self: false,
    cursor: { x: 1, y: -2 },
    selection: undefined,
    viewport: undefined,
    fields: { colour: "red", list: [1, { a: null }] },
  });
  expect(participants.receiveDelta(room.leave(ANN))).toEqual({ entered: [], changed: [], left: [ANN], roster: true });
  expect(participants.all.size).toBe(0);
});

test("[PAR2] fields are independent: one changes, one is removed, the others stay", () => {
  const room = new ModelPresence();
  const participants = new Participants();
  room.enter(ANN);
  room.show(ANN, fieldsOf({ cursor: { x: 1, y: 1 }, user: { name: "Ann" }, mood: "calm" }));
  participants.receiveDelta(room.snapshot);
  const before = participants.all.get(ANN)!;
  expect(participants.receiveDelta(room.show(ANN, fieldsOf({ cursor: { x: 2, y: 1 }, mood: null })))).toEqual({
    entered: [],
    changed: [ANN],
    left: [],
    roster: false,
  });
  const after = participants.all.get(ANN)!;
  expect([after.cursor, after.fields]).toEqual([{ x: 2, y: 1 }, { user: { name: "Ann" } }]);
  expect(after.fields["user"], "an unchanged participant is the same object").toBe(before.fields["user"]);
  participants.receiveDelta(room.show(ANN, fieldsOf({ cursor: { x: 3, y: 1 } })));
  expect(participants.all.get(ANN)!.fields).toBe(after.fields);
});

test("[PAR3] a full roster without changes changes nothing; participants that are absent from it are removed", () => {
  const room = new ModelPresence();
  const participants = new Participants();
  for (const client of [ANN, BOB]) room.enter(client);
  room.show(BOB, fieldsOf({ mood: "calm" }));
  participants.receiveDelta(room.snapshot);
  const bob = participants.all.get(BOB);
  room.renumber();
  expect(participants.receiveDelta(room.snapshot)).toEqual({ entered: [], changed: [], left: [], roster: false });
  expect(participants.all.get(BOB)).toBe(bob);
  room.leave(ANN);
  room.enter(CID);
  expect(participants.receiveDelta(room.snapshot)).toEqual({ entered: [CID], changed: [], left: [ANN], roster: true });
});

test("[PAR4] fields for a number that is reassigned or unknown reach no listener", () => {
  const participants = new Participants();
  const one = (client: ClientId) => ({ number: 1, client, user: "u" as UserId, name: "n", canWrite: true, spectator: false });
  const delta = (more: Partial<PresenceDelta>): PresenceDelta => ({ snapshot: false, present: [], gone: [], states: [], ...more });
  participants.receiveDelta(
    delta({
      present: [one(ANN)],
      states: [
        { number: 1, fields: fieldsOf({ mood: "calm" }) },
        { number: 7, fields: fieldsOf({ mood: "lost" }) },
      ],
    }),
  );
  participants.receiveDelta(delta({ gone: [9], present: [one(BOB)] }));
  expect(seenBy(participants)).toEqual({ [BOB]: { name: "n", role: "editor", cursor: undefined, fields: {} } });
});

test("[PAR4] a participant that returns under another number has none of its earlier fields, and its earlier number is nobody's", () => {
  const participants = new Participants();
  const one = (number: number, client: ClientId) => ({ number, client, user: "u" as UserId, name: "n", canWrite: true, spectator: false });
  const delta = (more: Partial<PresenceDelta>): PresenceDelta => ({ snapshot: false, present: [], gone: [], states: [], ...more });
  participants.receiveDelta(delta({ present: [one(1, ANN)], states: [{ number: 1, fields: fieldsOf({ mood: "calm" }) }] }));
  expect(participants.receiveDelta(delta({ present: [one(2, ANN)] }))).toMatchObject({ entered: [], changed: [ANN], left: [] });
  expect(participants.all.get(ANN)!.fields).toEqual({});
  expect(participants.receiveDelta(delta({ gone: [1] }))).toEqual({ entered: [], changed: [], left: [], roster: false });
  participants.receiveDelta(delta({ snapshot: true, present: [one(2, BOB)] }));
  expect([...participants.all.keys()], "the number of a client that the snapshot lacks is another client's").toEqual([BOB]);
});

test("[PAR5] a roster delta turns a participant into a spectator; its fields stay", () => {
  const room = new ModelPresence();
  const participants = new Participants();
  room.enter(ANN);
  room.show(ANN, fieldsOf({ mood: "calm" }));
  participants.receiveDelta(room.snapshot);
  expect(participants.receiveDelta(room.enter(ANN, { spectator: true }))).toEqual({ entered: [], changed: [ANN], left: [], roster: true });
  expect(participants.all.get(ANN)).toMatchObject({ role: "spectator", fields: { mood: "calm" } });
});

test("[PAR5] a changed name, user or right is reported as a change of the roster", () => {
  const room = new ModelPresence();
  const participants = new Participants();
  participants.receiveDelta(room.enter(ANN, { name: "Ann" }));
  const before = participants.all.get(ANN)!;
  for (const change of [{ name: "Anna" }, { user: "other" as UserId }, { canWrite: false }]) {
    expect(participants.receiveDelta(room.enter(ANN, change))).toEqual({ entered: [], changed: [ANN], left: [], roster: true });
    expect(participants.all.get(ANN)).toMatchObject(change);
  }
  expect(before.name, "the earlier object stays as it was").toBe("Ann");
});

test("[PAR6] this client shows its own values, even if the room still holds older ones", () => {
  const room = new ModelPresence();
  const participants = new Participants();
  const own = (presence: object) => new Map(fieldsOf(presence as Parameters<typeof fieldsOf>[0]).map(({ name, value }) => [name, value]));
  participants.selfIs(ANN, own({ mood: "new" }));
  room.enter(ANN);
  room.show(ANN, fieldsOf({ mood: "old" }));
  participants.receiveDelta(room.snapshot);
  expect(participants.all.get(ANN)).toMatchObject({ self: true, fields: { mood: "new" } });
  expect(participants.selfIs(ANN, own({ mood: "newer" }))).toMatchObject({ changed: [ANN] });
  participants.receiveDelta(room.enter(BOB));
  expect(participants.selfIs(BOB, own({})), "after a reconnect as another user").toMatchObject({ changed: [ANN, BOB], roster: true });
  expect([ANN, BOB].map((client) => participants.all.get(client)!.self)).toEqual([false, true]);
});

test("[PAR6] fields named like properties of an object's prototype are ordinary fields", () => {
  const room = new ModelPresence();
  const participants = new Participants();
  room.enter(ANN);
  room.show(ANN, [{ name: "__proto__", value: new TextEncoder().encode('{"isAdmin":true}') }]);
  participants.receiveDelta(room.snapshot);
  const { fields } = participants.all.get(ANN)!;
  expect(Object.getPrototypeOf(fields)).toBe(Object.prototype);
  expect((fields as { isAdmin?: boolean }).isAdmin).toBeUndefined();
});

const step = fc.oneof(
  fc.record({ kind: fc.constant("toggle" as const), client: fc.constantFrom(ANN, BOB, CID) }),
  fc.record({ kind: fc.constant("role" as const), client: fc.constantFrom(ANN, BOB, CID), spectator: fc.boolean() }),
  fc.record({
    kind: fc.constant("show" as const),
    client: fc.constantFrom(ANN, BOB, CID),
    presence: fc.record(
      {
        cursor: fc.option(fc.record({ x: fc.integer({ min: -9, max: 9 }), y: fc.constant(0) })),
        mood: fc.option(fc.integer({ min: 0, max: 3 })),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({ kind: fc.constant("snapshot" as const) }),
  fc.record({ kind: fc.constant("new owner" as const) }),
);

test("[PAR7] clients that receive every delta, join late, or receive occasional snapshots see the same; reported changes add up to it", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.nat(39), (steps, lateAt) => {
      const room = new ModelPresence();
      const [early, late] = [new Participants(), new Participants()];
      const reported = new Set<ClientId>();
      early.receiveDelta(room.snapshot);
      for (const [index, taken] of steps.entries()) {
        if (index === lateAt) late.receiveDelta(room.snapshot);
        const delta = deltaOf(room, taken);
        if (delta === undefined) continue;
        const before = seenBy(early);
        const { entered, changed, left, roster } = early.receiveDelta(delta);
        if (index >= lateAt) late.receiveDelta(delta);
        for (const client of entered) expect(reported.has(client) || !reported.add(client)).toBe(false);
        for (const client of left) expect(reported.delete(client)).toBe(true);
        expect(roster || entered.length + left.length === 0).toBe(true);
        if (entered.length + changed.length + left.length === 0) expect(seenBy(early)).toEqual(before);
      }
      if (steps.length <= lateAt) late.receiveDelta(room.snapshot);
      const truth = new Participants();
      truth.receiveDelta(room.snapshot);
      expect(seenBy(early)).toEqual(seenBy(truth));
      expect(seenBy(late)).toEqual(seenBy(truth));
      expect([...reported].sort()).toEqual([...truth.all.keys()].sort());
    }),
  );
});

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

function deltaOf(room: ModelPresence, taken: Step): PresenceDelta | undefined {
  switch (taken.kind) {
    case "toggle":
      return room.has(taken.client) ? room.leave(taken.client) : room.enter(taken.client);
    case "role":
      return room.has(taken.client) ? room.enter(taken.client, { spectator: taken.spectator }) : undefined;
    case "show":
      return room.has(taken.client) ? room.show(taken.client, fieldsOf(taken.presence)) : undefined;
    case "snapshot":
      return room.snapshot;
    case "new owner":
      room.renumber();
      return room.snapshot;
  }
}
