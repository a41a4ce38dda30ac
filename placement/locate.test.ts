import { expect, test } from "vitest";

import type { Epoch, RoomKey, ServerId } from "../shared/ids.ts";
import { rankServers } from "../shared/cluster/rendezvous.ts";
import { decideOwner, type LocateServers } from "./view.ts";

const room = "acme.notes" as RoomKey;
const ids = (...names: string[]) => names as ServerId[];
const servers = (live: ServerId[], available = live): LocateServers => ({ available, isLive: (server) => live.includes(server) });
const owned = (owner: string) => ({ owner: owner as ServerId, epoch: 3 as Epoch });

test("[LOC1] a live owner keeps its room, whatever the hash returns", () => {
  const all = ids("a", "b", "c");
  for (const owner of all)
    expect(decideOwner({ room, suspects: [] }, owned(owner), undefined, servers(all))).toEqual({ kind: "server", server: owner });
});

test("[LOC2] a draining owner is still returned for the rooms that it owns", () => {
  expect(decideOwner({ room, suspects: [] }, owned("a"), undefined, servers(ids("a", "b"), ids("b")))).toEqual({
    kind: "server",
    server: "a",
  });
});

test("[LOC3] without an entry, or with a dead owner, the hash over the live servers decides", () => {
  const live = ids("a", "b", "c");
  const best = rankServers(room, live)[0];
  expect(decideOwner({ room, suspects: [] }, undefined, undefined, servers(live))).toEqual({ kind: "server", server: best });
  expect(decideOwner({ room, suspects: [] }, owned("dead"), undefined, servers(live))).toEqual({ kind: "server", server: best });
});

test("[LOC4] a suspect is skipped, as the owner and as a candidate", () => {
  const live = ids("a", "b", "c");
  const [first, second] = rankServers(room, live);
  expect(decideOwner({ room, suspects: [first!] }, owned(first!), undefined, servers(live))).toEqual({ kind: "server", server: second });
  expect(decideOwner({ room, suspects: live }, undefined, undefined, servers(live)).kind).toBe("none");
});

test("[LOC5] a live server with a replica is asked first for a dead owner's room, if it takes rooms", () => {
  const live = ids("a", "b", "c");
  for (const replica of live)
    expect(decideOwner({ room, suspects: [] }, owned("dead"), replica, servers(live))).toEqual({ kind: "server", server: replica });
  const best = rankServers(room, ids("a", "b"))[0]!;
  expect(decideOwner({ room, suspects: ids("c") }, owned("dead"), "c" as ServerId, servers(live))).toEqual({
    kind: "server",
    server: best,
  });
  expect(decideOwner({ room, suspects: [] }, owned("dead"), "c" as ServerId, servers(live, ids("a", "b")))).toEqual({
    kind: "server",
    server: best,
  });
});
