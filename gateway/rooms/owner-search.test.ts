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

test("[OSE1] a search asks placement, then asks the named server to take the room", () => {
  const search = new OwnerSearch();
  expect(search.begin(SILENT, at(0))).toEqual([{ kind: "locate", suspects: [] }]);
  expect(search.receiveOutcome(located(one), at(1))).toEqual({ found: false, steps: [{ kind: "claim", server: one, suspect: undefined }] });
  expect(search.receiveOutcome(owned(one), at(2))).toEqual({ found: true, steps: [] });
  expect(search.active).toBe(false);
});

test("[OSE2] a room has one search at a time", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  expect(search.begin(SILENT, at(0))).toEqual([]);
});

test("[OSE3] a server that does not answer is skipped and named as the suspect", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receiveOutcome(located(one), at(1));
  expect(search.receiveOutcome(noAnswer(one), at(2)).steps).toEqual([{ kind: "locate", suspects: [one] }]);
  expect(search.receiveOutcome(located(two), at(3)).steps).toEqual([{ kind: "claim", server: two, suspect: one }]);
});

test("[OSE4] the known owner is the suspect when another server is asked", () => {
  const search = new OwnerSearch();
  search.receiveNewOwner(one);
  search.begin(SILENT, at(0));
  expect(search.receiveOutcome(located(two), at(1)).steps).toEqual([{ kind: "claim", server: two, suspect: one }]);
});

test("[OSE5] without placement the gateway asks the live servers that it knows, the best one first", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  expect(search.receiveOutcome(noPlacement(two, one), at(1)).steps).toEqual([{ kind: "claim", server: two, suspect: undefined }]);
  search.receiveOutcome(noAnswer(two), at(2));
  expect(search.receiveOutcome(noPlacement(two, one), at(3)).steps).toEqual([{ kind: "claim", server: one, suspect: two }]);
});

test("[OSE6] a server that lost the room to another one directs the search there", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receiveOutcome(located(one), at(1));
  const elsewhere: SearchOutcome = { kind: "claimed", server: one, reply: { kind: "elsewhere", server: three, epoch } };
  expect(search.receiveOutcome(elsewhere, at(2)).steps).toMatchObject([{ kind: "claim", server: three }]);
});

test("[OSE7] a search without an answer pauses, longer each time, and begins again", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  let now = 0;
  const pauses: number[] = [];
  for (let round = 0; round < 7; round++) {
    search.receiveOutcome(nobody, at(now));
    const pausedAt = now;
    while (search.receiveTick(at(now)).length === 0) now += 100;
    pauses.push(now - pausedAt);
  }
  expect(pauses).toEqual([100, 200, 400, 800, 1_600, 1_600, 1_600]);
});

test("[OSE8] an owner that claims the room and stays silent is not asked in a tight loop", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receiveOutcome(located(one), at(1));
  search.receiveOutcome(owned(one), at(2));
  expect(search.begin(SILENT, at(3))).toEqual([]);
  expect(search.receiveTick(at(103))).toEqual([{ kind: "locate", suspects: [] }]);

  const alive = new OwnerSearch();
  alive.begin(SILENT, at(0));
  alive.receiveOutcome(located(one), at(1));
  alive.receiveOutcome(owned(one), at(2));
  alive.receiveSignOfLife();
  expect(alive.begin(SILENT, at(3))).toEqual([{ kind: "locate", suspects: [] }]);
});

test("[OSE9] a new owner's epoch ends the search, and later outcomes of its steps are ignored", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receiveOutcome(located(one), at(1));
  search.receiveNewOwner(two);
  expect(search.active).toBe(false);
  expect(search.receiveOutcome(owned(one), at(2))).toEqual({ found: false, steps: [] });
});

test("[OSE10] a message of the former owner does not end the search, because it may be older than its failure", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  search.receiveSignOfLife();
  expect(search.active).toBe(true);
});

const elsewhere = (server: ServerId, owner: ServerId): SearchOutcome => ({
  kind: "claimed",
  server,
  reply: { kind: "elsewhere", server: owner, epoch },
});

test("[OSE11] a server that is named as the owner and does not answer is replaced by the one that named it", () => {
  const search = new OwnerSearch();
  search.receiveNewOwner(three); // Long after the failure.
  search.begin(SILENT, at(0));
  search.receiveOutcome(noPlacement(one, two), at(1));
  expect(search.receiveOutcome(elsewhere(one, two), at(2)).steps).toMatchObject([{ kind: "claim", server: two }]);
  expect(search.receiveOutcome(noAnswer(two), at(3)).steps).toEqual([{ kind: "claim", server: one, suspect: two }]);
  expect(search.receiveOutcome(owned(one), at(4)).found).toBe(true);
});

test("[OSE11] a server that still names a skipped server is informed once that it was skipped", () => {
  const search = new OwnerSearch();
  search.receiveNewOwner(three);
  search.begin(SILENT, at(0));
  search.receiveOutcome(located(two), at(1));
  search.receiveOutcome(noAnswer(two), at(2));
  expect(search.receiveOutcome(located(one), at(3)).steps).toEqual([{ kind: "claim", server: one, suspect: three }]);
  expect(search.receiveOutcome(elsewhere(one, two), at(4)).steps).toEqual([{ kind: "claim", server: one, suspect: two }]);
  expect(search.receiveOutcome(elsewhere(one, two), at(5)).steps).toEqual([{ kind: "locate", suspects: [two, one] }]);
});

test("[OSE12] two servers that name each other do not keep the search running", () => {
  const search = new OwnerSearch();
  search.begin(SILENT, at(0));
  let steps = search.receiveOutcome(located(one), at(1)).steps;
  for (let hops = 0; steps[0]?.kind === "claim"; hops++) {
    expect(hops).toBeLessThan(6);
    steps = search.receiveOutcome(elsewhere(steps[0].server, steps[0].server === one ? two : one), at(2)).steps;
  }
  expect(steps).toMatchObject([{ kind: "locate" }]);
});

test("[OSE13] the rooms of a lost owner are left to servers with replicas for a moment", () => {
  const lost = new OwnerSearch();
  lost.receiveNewOwner(one);
  expect(lost.begin({ kind: "lost", server: one }, at(0))).toEqual([]);
  expect(lost.receiveTick(at(200))).toEqual([]);
  expect(lost.receiveTick(at(300))).toEqual([{ kind: "locate", suspects: [one] }]);

  const taken = new OwnerSearch();
  taken.receiveNewOwner(one);
  taken.begin({ kind: "lost", server: one }, at(0));
  taken.receiveNewOwner(two);
  expect([taken.active, taken.receiveTick(at(300))]).toEqual([false, []]);
});

test("[OSE14] if a room has no subscriber, its last owner is checked first, and placement is asked immediately if that server released the room", () => {
  const search = new OwnerSearch();
  expect(search.begin({ kind: "no-responders" }, at(0))).toEqual([{ kind: "locate", suspects: [] }]);

  const released = new OwnerSearch();
  released.receiveNewOwner(one);
  expect(released.begin({ kind: "no-responders" }, at(0))).toEqual([{ kind: "check", server: one }]);
  expect(released.receiveOutcome({ kind: "checked", server: one, isGone: false }, at(1)).steps).toEqual([{ kind: "locate", suspects: [] }]);

  const gone = new OwnerSearch();
  gone.receiveNewOwner(one);
  gone.begin({ kind: "no-responders" }, at(0));
  expect(gone.receiveOutcome({ kind: "checked", server: one, isGone: true }, at(1)).steps).toEqual([]);
  expect(gone.receiveTick(at(251))).toEqual([{ kind: "locate", suspects: [one] }]);
});
