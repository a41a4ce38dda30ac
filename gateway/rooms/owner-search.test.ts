import { expect, test } from "vitest";

import type { Epoch, Millis, ServerId } from "../../shared/ids.ts";
import { OwnerSearch, type SearchOutcome } from "./owner-search.ts";

const SILENT = { kind: "silent" } as const;
const at = (ms: number): Millis => ms as Millis;
const [one, two, three] = ["rs-1", "rs-2", "rs-3"] as [ServerId, ServerId, ServerId];
const epoch = 5 as Epoch;

const located = (server: ServerId): SearchOutcome => ({ kind: "located", reply: { kind: "server", server }, candidates: [] });
const noPlacement = (...candidates: ServerId[]): SearchOutcome => ({ kind: "located", reply: undefined, candidates });
const nobody: SearchOutcome = { kind: "located", reply: { kind: "none", reason: "" }, candidates: [] };
const owned = (server: ServerId): SearchOutcome => ({ kind: "claimed", server, reply: { kind: "owned", server, epoch } });
const noAnswer = (server: ServerId): SearchOutcome => ({ kind: "claimed", server, reply: undefined });

test("[OSE1] placement is asked, then the server it names is asked to take the room", () => {
  const search = new OwnerSearch();
  expect(search.begin(SILENT, at(0))).toEqual([{ kind: "locate", suspects: [] }]);
  expect(search.receive(located(one), at(1))).toEqual({ found: false, steps: [{ kind: "claim", server: one, suspect: undefined }] });
  expect(search.receive(owned(one), at(2))).toEqual({ found: true, steps: [] });
  expect(search.active).toBe(false);
});

test("[OSE2] there is one search at a time", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  expect(search.begin(SILENT, at(0))).toEqual([]);
});

test("[OSE3] a server that does not answer is passed over and named as the suspect", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receive(located(one), at(1));
  expect(search.receive(noAnswer(one), at(2)).steps).toEqual([{ kind: "locate", suspects: [one] }]);
  expect(search.receive(located(two), at(3)).steps).toEqual([{ kind: "claim", server: two, suspect: one }]);
});

test("[OSE4] the owner known is the suspect when another is asked", () => {
  const search = new OwnerSearch();
  search.ownerChanged(one);
  search.begin(SILENT, at(0));
  expect(search.receive(located(two), at(1)).steps).toEqual([{ kind: "claim", server: two, suspect: one }]);
});

test("[OSE5] without placement the gateway tries the live servers it knows, the best first", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  expect(search.receive(noPlacement(two, one), at(1)).steps).toEqual([{ kind: "claim", server: two, suspect: undefined }]);
  search.receive(noAnswer(two), at(2));
  expect(search.receive(noPlacement(two, one), at(3)).steps).toEqual([{ kind: "claim", server: one, suspect: two }]);
});

test("[OSE6] one that lost the room to another sends the search there", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receive(located(one), at(1));
  const elsewhere: SearchOutcome = { kind: "claimed", server: one, reply: { kind: "elsewhere", server: three, epoch } };
  expect(search.receive(elsewhere, at(2)).steps).toMatchObject([{ kind: "claim", server: three }]);
});

test("[OSE7] when nobody takes the room the search pauses, longer each time, and begins anew", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  let now = 0;
  const pauses: number[] = [];
  for (let round = 0; round < 7; round++) {
    search.receive(nobody, at(now));
    const pausedAt = now;
    while (search.receiveTick(at(now)).length === 0) now += 100;
    pauses.push(now - pausedAt);
  }
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, 1_600, 1_600]);
});

test("[OSE8] an owner that says it has the room and then stays silent is not asked in a tight loop", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receive(located(one), at(1));
  search.receive(owned(one), at(2));
  expect(search.begin(SILENT, at(3))).toEqual([]);
  expect(search.receiveTick(at(103))).toEqual([{ kind: "locate", suspects: [] }]);

  const heard = new OwnerSearch();
  heard.begin(SILENT, at(0));
  heard.receive(located(one), at(1));
  heard.receive(owned(one), at(2));
  heard.ownerHeard();
  expect(heard.begin(SILENT, at(3))).toEqual([{ kind: "locate", suspects: [] }]);
});

test("[OSE9] a new owner's epoch ends the search; what comes of its steps is ignored", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receive(located(one), at(1));
  search.ownerChanged(two);
  expect(search.active).toBe(false);
  expect(search.receive(owned(one), at(2))).toEqual({ found: false, steps: [] });
});

test("[OSE10] a word from the old owner does not end it: it may have been said before its death", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.ownerHeard();
  expect(search.active).toBe(true);
});

const elsewhere = (server: ServerId, owner: ServerId): SearchOutcome => ({
  kind: "claimed",
  server,
  reply: { kind: "elsewhere", server: owner, epoch },
});

test("[OSE11] one that is said to have the room and does not answer is taken over from by whoever said so", () => {
  const search = new OwnerSearch();
  search.ownerChanged(three); // Long gone.
  search.begin(SILENT, at(0));
  search.receive(noPlacement(one, two), at(1));
  expect(search.receive(elsewhere(one, two), at(2)).steps).toMatchObject([{ kind: "claim", server: two }]);
  expect(search.receive(noAnswer(two), at(3)).steps).toEqual([{ kind: "claim", server: one, suspect: two }]);
  expect(search.receive(owned(one), at(4)).found).toBe(true);
});

test("[OSE11] whoever still sends the search to one that was passed over is told so, once", () => {
  const search = new OwnerSearch();
  search.ownerChanged(three);
  search.begin(SILENT, at(0));
  search.receive(located(two), at(1));
  search.receive(noAnswer(two), at(2));
  expect(search.receive(located(one), at(3)).steps).toEqual([{ kind: "claim", server: one, suspect: three }]);
  expect(search.receive(elsewhere(one, two), at(4)).steps).toEqual([{ kind: "claim", server: one, suspect: two }]);
  expect(search.receive(elsewhere(one, two), at(5)).steps).toEqual([{ kind: "locate", suspects: [two, one] }]);
});

test("[OSE12] two that send the search to each other do not keep it", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  let steps = search.receive(located(one), at(1)).steps;
  for (let hops = 0; steps[0]?.kind === "claim"; hops++) {
    expect(hops).toBeLessThan(6);
    steps = search.receive(elsewhere(steps[0].server, steps[0].server === one ? two : one), at(2)).steps;
  }
  expect(steps).toMatchObject([{ kind: "locate" }]);
});

test("[OSE13] the rooms of an owner that is gone are left to whoever has warm copies of them, for a moment", () => {
  const lost = new OwnerSearch();
  lost.ownerChanged(one);
  expect(lost.begin({ kind: "lost", server: one }, at(0))).toEqual([]);
  expect(lost.receiveTick(at(200))).toEqual([]);
  expect(lost.receiveTick(at(300))).toEqual([{ kind: "locate", suspects: [one] }]);

  const taken = new OwnerSearch();
  taken.ownerChanged(one);
  taken.begin({ kind: "lost", server: one }, at(0));
  taken.ownerChanged(two);
  expect([taken.active, taken.receiveTick(at(300))]).toEqual([false, []]);
});

test("[OSE14] where nobody listens the owner is looked at first: a room that it released is asked for at once", () => {
  const search = new OwnerSearch();
  expect(search.begin({ kind: "unheard" }, at(0))).toEqual([{ kind: "locate", suspects: [] }]);

  const released = new OwnerSearch();
  released.ownerChanged(one);
  expect(released.begin({ kind: "unheard" }, at(0))).toEqual([{ kind: "check", server: one }]);
  expect(released.receive({ kind: "checked", server: one, isGone: false }, at(1)).steps).toEqual([{ kind: "locate", suspects: [] }]);

  const gone = new OwnerSearch();
  gone.ownerChanged(one);
  gone.begin({ kind: "unheard" }, at(0));
  expect(gone.receive({ kind: "checked", server: one, isGone: true }, at(1)).steps).toEqual([]);
  expect(gone.receiveTick(at(251))).toEqual([{ kind: "locate", suspects: [one] }]);
});
