import { expect, test } from "vitest";

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Millis, Seq, UserId } from "../../shared/ids.ts";
import { UnackedBudget } from "./unacked-budget.ts";
import { Unacked } from "./edit-relay.ts";

const ann = "annannannannann1" as ClientId;
const bob = "bobbobbobbobbob1" as ClientId;
const at = (ms: number): Millis => ms as Millis;

function edit(client: ClientId, counter: number, bytes = 10): SubmittedEdit {
  return { author: { user: "u" as UserId, client }, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(bytes) };
}

function held(options: { editsMax?: number; bytesMax?: number; budget?: UnackedBudget } = {}): Unacked {
  return new Unacked(
    { forwardedEditsPerRoomMax: options.editsMax ?? 100, forwardedBytesPerRoomMax: options.bytesMax ?? 1e6, forwardedKeptMs: 300_000 },
    options.budget ?? new UnackedBudget({ bytesMax: 1e6 }),
  );
}

const counters = (edits: readonly SubmittedEdit[]): string =>
  edits.map(({ author, counter }) => `${author.client.slice(0, 3)}${counter}`).join(" ");

test("[UNA1] each writer's edits are sent again in its own order", () => {
  const unacked = held();
  for (const [client, counter] of [
    [ann, 1],
    [bob, 1],
    [ann, 2],
    [ann, 4],
    [ann, 3],
  ] as const)
    unacked.add(edit(client, counter), at(0));
  expect(counters(unacked.sendAllAgain(at(1)))).toBe("ann1 ann2 ann3 ann4 bob1");
});

test("[UNA2] an edit that is held already is not accepted twice", () => {
  const unacked = held();
  expect(unacked.add(edit(ann, 1), at(0))).toBe("added");
  expect(unacked.add(edit(ann, 1), at(0))).toBe("held");
  expect(unacked.size).toBe(1);
});

test("[UNA3] edits up to the acknowledged counter are removed", () => {
  const unacked = held();
  for (const counter of [1, 2, 3]) unacked.add(edit(ann, counter), at(0));
  unacked.settle(ann, 2, at(1));
  expect(counters(unacked.sendAllAgain(at(1)))).toBe("ann3");
  expect(unacked.isSettled(ann, 2)).toBe(true);
  expect(unacked.isSettled(ann, 3)).toBe(false);
});

test("[UNA4] refusing an edit removes all later ones of the same writer", () => {
  const unacked = held();
  for (const counter of [1, 2, 3]) unacked.add(edit(ann, counter), at(0));
  unacked.add(edit(bob, 2), at(0));
  unacked.refuse(ann, 2);
  expect(counters(unacked.sendAllAgain(at(1)))).toBe("ann1 bob2");
});

test("[UNA5] a room is limited in edits and bytes, a gateway in the bytes of all its rooms", () => {
  const few = held({ editsMax: 2 });
  expect([1, 2, 3].map((counter) => few.add(edit(ann, counter), at(0)))).toEqual(["added", "added", "room-unacked"]);
  const small = held({ bytesMax: 1_000 });
  expect([1, 2].map((counter) => small.add(edit(ann, counter, 500), at(0)))).toEqual(["added", "room-unacked"]);
  const budget = new UnackedBudget({ bytesMax: 1_000 });
  const [one, other] = [held({ budget }), held({ budget })];
  expect([one.add(edit(ann, 1, 500), at(0)), other.add(edit(ann, 1, 500), at(0))]).toEqual(["added", "gateway-unacked"]);
  one.settle(ann, 1, at(1));
  expect(other.add(edit(ann, 1, 500), at(0))).toBe("added");
  other.clear();
  expect(budget).toMatchObject({ edits: 0, bytes: 0 });
});

test("[UNA6] a writer without progress is overdue and a writer with progress is not, independently of other writers", () => {
  const unacked = held();
  unacked.add(edit(ann, 1), at(0));
  unacked.add(edit(bob, 1), at(0));
  unacked.add(edit(bob, 2), at(0));
  unacked.settle(bob, 1, at(900));
  expect(unacked.takeOverdue(1_000, at(999)).edits).toEqual([]);
  const overdue = unacked.takeOverdue(1_000, at(1_000));
  expect([counters(overdue.edits), overdue.fruitless]).toEqual(["ann1", false]);
});

test("[UNA7] the wait doubles with each fruitless repetition, up to eight times, and progress resets it", () => {
  const unacked = held();
  unacked.add(edit(ann, 1), at(0));
  unacked.add(edit(ann, 2), at(0));
  const overdueAt: number[] = [];
  for (let ms = 0; ms <= 40_000; ms += 500) if (unacked.takeOverdue(1_000, at(ms)).edits.length > 0) overdueAt.push(ms);
  expect(overdueAt).toEqual([1_000, 3_000, 7_000, 15_000, 23_000, 31_000, 39_000]);
  unacked.settle(ann, 1, at(40_000));
  expect(unacked.takeOverdue(1_000, at(41_000))).toMatchObject({ fruitless: false, edits: [{ counter: 2 }] });
});

test("[UNA8] the edits of a disconnected client expire after five minutes, unless the client reconnects", () => {
  const unacked = held();
  unacked.add(edit(ann, 1), at(0));
  unacked.add(edit(bob, 1), at(0));
  unacked.clientGone(ann, at(0));
  unacked.clientGone(bob, at(0));
  unacked.clientBack(bob);
  unacked.expire(at(300_000));
  expect(unacked.size).toBe(2);
  unacked.expire(at(300_001));
  expect(counters(unacked.sendAllAgain(at(300_001)))).toBe("bob1");
});

test("[UNA9] a missing edit that the gateway holds is sent again with all later ones", () => {
  const unacked = held();
  for (const counter of [2, 3, 4]) unacked.add(edit(ann, counter), at(0));
  expect(counters(unacked.sendAgainFrom(ann, 3, at(1)))).toBe("ann3 ann4");
  expect(unacked.sendAgainFrom(ann, 1, at(1))).toEqual([]);
  expect(unacked.sendAgainFrom(bob, 1, at(1))).toEqual([]);
});

test("[UNA10] repeated edits name the settled edits, so that an owner that has lost those edits does not wait for them", () => {
  const unacked = held();
  for (const counter of [1, 2, 3, 4]) unacked.add(edit(ann, counter), at(0));
  unacked.settle(ann, 2, at(1));
  unacked.add(edit(ann, 1), at(1)); // The client has received no ack yet.
  const summaryOf = (edits: readonly SubmittedEdit[]): string[] =>
    edits.map(({ counter, ackedThrough }) => `${counter} after ${ackedThrough}`);
  expect(summaryOf(unacked.sendAllAgain(at(2)))).toEqual(["1 after 0", "3 after 2", "4 after 2"]);
  expect(summaryOf(unacked.sendAgainFrom(ann, 3, at(2)))).toEqual(["3 after 2", "4 after 2"]);
  expect(summaryOf(unacked.takeOverdue(1_000, at(9_000)).edits)).toEqual(["1 after 0", "3 after 2", "4 after 2"]);
});
