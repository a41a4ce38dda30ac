import { expect, test } from "vitest";

import type { ClientId, Epoch, UserId } from "../../shared/ids.ts";
import { decodeDelta, encodeDelta, type ParticipantEntry, type PresenceDelta } from "../../shared/wire/presence.ts";
import { stepsDuring } from "../../shared/testing/counted-steps.ts";
import { PresenceView } from "./presence-view.ts";

const first = 1 as Epoch;
const person = (number: number, name: string): ParticipantEntry => ({
  number,
  client: name.padEnd(16, "1") as ClientId,
  user: name as UserId,
  name,
  canWrite: true,
  spectator: false,
});
const field = (name: string, text: string) => ({ name, value: new TextEncoder().encode(text) });
const delta = (parts: Partial<PresenceDelta>): Uint8Array => encodeDelta({ snapshot: false, present: [], gone: [], states: [], ...parts });
const [ann, bob] = [person(1, "ann"), person(2, "bob")];

/** Ann is in the room, and draws. */
function known(): PresenceView {
  const view = new PresenceView();
  view.receiveEpoch(first);
  view.receiveSnapshot({
    number: 4,
    delta: delta({ snapshot: true, present: [ann], states: [{ number: 1, fields: [field("tool", "pen")] }] }),
  });
  return view;
}
const namesIn = (view: PresenceView) => decodeDelta(view.snapshot)!.present.map(({ name }) => name);

test("[PRG30] consecutive deltas are passed on in the owner's own bytes", () => {
  const view = known();
  const bytes = delta({ present: [bob] });
  expect(view.receiveDelta({ number: 5, delta: bytes })).toMatchObject([{ bytes }]);
  expect([namesIn(view), view.isBehind]).toEqual([["ann", "bob"], false]);
  expect(view.receiveDelta({ number: 5, delta: bytes })).toEqual([]);
  expect(view.isBehind, "a repeat is not a gap").toBe(false);
});

test("[PRG31] deltas after a gap wait for the snapshot, and follow it", () => {
  const view = known();
  expect(view.receiveDelta({ number: 6, delta: delta({ states: [{ number: 2, fields: [field("tool", "brush")] }] }) })).toEqual([]);
  expect(view.isBehind).toBe(true);
  const updates = view.receiveSnapshot({ number: 5, delta: delta({ snapshot: true, present: [ann, bob] }) });
  expect(updates.map((update) => update.delta)).toMatchObject([
    { snapshot: false, present: [bob], states: [{ number: 1, fields: [{ name: "tool", value: new Uint8Array(0) }] }] },
    { states: [{ number: 2 }] },
  ]);
  expect([view.shown(bob.client, "tool"), view.isBehind]).toEqual([field("tool", "brush").value, false]);
});

test("[PRG31] a delta that waited, and that the snapshot contains, is forgotten", () => {
  const view = known();
  view.receiveDelta({ number: 6, delta: delta({ present: [bob] }) });
  view.receiveSnapshot({ number: 6, delta: delta({ snapshot: true, present: [ann, bob] }) });
  view.receiveDelta({ number: 7, delta: delta({ gone: [2] }) });
  expect([namesIn(view), view.isBehind]).toEqual([["ann"], false]);
});

test.each<Partial<ParticipantEntry>>([{ user: "other" as UserId }, { name: "Anna" }, { canWrite: false }, { spectator: true }])(
  "[PRG31] a known participant that changes (%o) keeps its fields, and a snapshot after a gap reports only the change",
  (change) => {
    const [view, missed] = [known(), known()];
    const [changed, states] = [{ ...ann, ...change }, [{ number: 1, fields: [field("tool", "pen")] }]];
    view.receiveDelta({ number: 5, delta: delta({ present: [changed] }) });
    expect(decodeDelta(view.snapshot)).toEqual({ snapshot: true, present: [changed], gone: [], states });
    const updates = missed.receiveSnapshot({ number: 6, delta: delta({ snapshot: true, present: [changed], states }) });
    expect(updates.map((update) => update.delta)).toMatchObject([{ snapshot: false, present: [changed], gone: [], states: [] }]);
  },
);

test("[PRG32] a late delta that closes the gap makes the snapshot unnecessary", () => {
  const view = known();
  view.receiveDelta({ number: 6, delta: delta({ gone: [1] }) });
  expect(view.receiveDelta({ number: 5, delta: delta({ present: [bob] }) })).toHaveLength(2);
  expect(namesIn(view)).toEqual(["bob"]);
});

test("[PRG33] a head beyond the last delta shows that deltas were lost", () => {
  const view = known();
  view.receiveHead(4);
  expect(view.isBehind).toBe(false);
  view.receiveHead(5);
  expect(view.isBehind).toBe(true);
});

test("[PRG33] after a reconnect a snapshot with the known number proves that nothing was lost", () => {
  const view = known();
  const { snapshot } = view;
  view.receiveReconnect();
  expect(view.isBehind).toBe(true);
  expect(view.receiveSnapshot({ number: 4, delta: snapshot })).toEqual([]);
  expect(view.isBehind).toBe(false);
});

test("[PRG34] nothing of a new epoch is shown before its snapshot, and what was shown stays", () => {
  const view = known();
  expect(view.receiveEpoch(2 as Epoch)).toBe("new-epoch");
  expect(view.receiveDelta({ number: 1, delta: delta({ present: [bob] }) })).toEqual([]);
  expect(namesIn(view)).toEqual(["ann"]);
  const [updates] = view.receiveSnapshot({
    number: 1,
    delta: delta({
      snapshot: true,
      present: [
        { ...ann, number: 2 },
        { ...bob, number: 1 },
      ],
    }),
  });
  expect(updates?.delta.snapshot).toBe(true);
  expect(view.receiveEpoch(first)).toBe("past");
});

test("[PRG34] a delta that waited in the former epoch does not follow the snapshot of the new one", () => {
  const view = known();
  view.receiveDelta({ number: 6, delta: delta({ gone: [1] }) });
  view.receiveEpoch(2 as Epoch);
  expect(view.receiveSnapshot({ number: 5, delta: delta({ snapshot: true, present: [ann] }) })).toHaveLength(1);
  expect([namesIn(view), view.isBehind]).toEqual([["ann"], false]);
});

test("[PRG35] a snapshot older than the known state is ignored", () => {
  const view = known();
  view.receiveDelta({ number: 5, delta: delta({ present: [bob] }) });
  expect(view.receiveSnapshot({ number: 4, delta: delta({ snapshot: true }) })).toEqual([]);
  expect(namesIn(view)).toEqual(["ann", "bob"]);
});

test("[PRG36] a delta that does not decode is a gap", () => {
  const view = known();
  expect(view.receiveDelta({ number: 5, delta: Uint8Array.of(9) })).toEqual([]);
  expect(view.isBehind).toBe(true);
});

test("[PRG35] a known participant with another name keeps its fields", () => {
  const view = known();
  view.receiveDelta({ number: 5, delta: delta({ present: [{ ...ann, name: "Anna" }] }) });
  expect([namesIn(view), view.shown(ann.client, "tool")]).toEqual([["Anna"], field("tool", "pen").value]);
});

test("[PRG56] a client is found by its newest number until that leaves, however many participants there are", () => {
  for (const others of [3, 40]) {
    const view = new PresenceView();
    view.receiveEpoch(first);
    const present = Array.from({ length: others }, (_, index) => person(10 + index, `other-${index}-`));
    view.receiveSnapshot({ number: 4, delta: delta({ snapshot: true, present: [ann, ...present] }) });
    view.receiveDelta({ number: 5, delta: delta({ present: [{ ...ann, number: 99 }, bob] }) });
    view.receiveDelta({ number: 6, delta: delta({ gone: [1, 10] }) });
    expect([ann, bob, present[0]!, present[1]!].map(({ client }) => view.numberOf(client))).toEqual([99, 2, undefined, 11]);
    view.receiveDelta({ number: 7, delta: delta({ gone: [99] }) });
    expect([view.has(ann.client), view.everything.present.length]).toEqual([false, others]);
    view.receiveSnapshot({ number: 8, delta: delta({ snapshot: true, present: present.slice(2) }) });
    expect([present[1]!, present[2]!].map(({ client }) => view.has(client))).toEqual([false, true]);
  }
});

test("[PRG88] the work for changed fields grows with their number, not with its square", () => {
  const count = 60;
  const states = (text: string) => [{ number: 1, fields: Array.from({ length: count }, (_, index) => field(`f${index}`, text)) }];
  const view = known();
  view.receiveDelta({ number: 5, delta: delta({ states: states("before") }) });
  expect(stepsDuring(() => view.receiveDelta({ number: 6, delta: delta({ states: states("after") }) }))).toBeLessThanOrEqual(4 * count);
  const snapshot = delta({ snapshot: true, present: [ann], states: states("later") });
  expect(stepsDuring(() => view.receiveSnapshot({ number: 7, delta: snapshot }))).toBeLessThanOrEqual(8 * count);
});
