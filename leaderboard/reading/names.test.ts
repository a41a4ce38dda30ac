import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { RoomKey, UserId } from "../../shared/ids.ts";
import type { BoardOwner } from "../boards/keys.ts";
import { leaderboardMetrics } from "../metrics.ts";
import type { StoredNames } from "../ports.ts";
import { NamesHost } from "./reads-host.ts";

const ROOM = "acme.notes" as RoomKey;
const ANN = "ann" as UserId;
const metrics = leaderboardMetrics(new Registry());
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const onNew = (): void => {};

class Stored implements StoredNames {
  readonly names = new Map<string, string>();
  reads = 0;
  writes = 0;
  isAway = false;
  countMax = 10;

  async write(_: BoardOwner, user: string, name: string): Promise<"written" | "full"> {
    this.writes += 1;
    if (this.isAway) throw new Error("Redis is away");
    if (this.names.size >= this.countMax && !this.names.has(user)) return "full";
    this.names.set(user, name);
    return "written";
  }

  async read(_: BoardOwner, users: readonly string[]): Promise<ReadonlyMap<string, string>> {
    this.reads += 1;
    return new Map(users.flatMap((user) => (this.names.has(user) ? [[user, this.names.get(user)!]] : [])));
  }
}

test("[LBN1] a repeated name is stored once for the room and once for the tenant, and a changed name again", async () => {
  const stored = new Stored();
  const names = new NamesHost(stored, { boardNamesMax: 10 }, { log, metrics, onNew });
  for (const name of ["Ann", "Ann", "Ann", "Anne"]) await names.receiveName({ room: ROOM, user: ANN, name });
  expect([stored.writes, await names.namesOf(ROOM, ["ann"]), stored.reads]).toEqual([4, new Map([["ann", "Anne"]]), 0]);
  expect([await names.namesOf("acme/people" as BoardOwner, ["ann"]), stored.reads]).toEqual([new Map([["ann", "Anne"]]), 0]);
});

test("[LBN2] showing the same users again reads nothing, whether their names are known or not", async () => {
  const stored = new Stored();
  stored.names.set("ann", "Ann");
  const names = new NamesHost(stored, { boardNamesMax: 10 }, { log, metrics, onNew });
  for (let push = 0; push < 5; push++) expect(await names.namesOf(ROOM, ["ann", "bob"])).toEqual(new Map([["ann", "Ann"]]));
  expect(stored.reads).toBe(1);
  await names.receiveName({ room: ROOM, user: "bob" as UserId, name: "Bob" });
  expect(await names.namesOf(ROOM, ["bob"])).toEqual(new Map([["bob", "Bob"]]));
});

test("[LBN3] a name that could not be stored is stored when it is announced again", async () => {
  const stored = new Stored();
  const names = new NamesHost(stored, { boardNamesMax: 10 }, { log, metrics, onNew });
  stored.isAway = true;
  await names.receiveName({ room: ROOM, user: ANN, name: "Ann" });
  stored.isAway = false;
  await names.receiveName({ room: ROOM, user: ANN, name: "Ann" });
  expect(stored.names.get("ann")).toBe("Ann");
});

test("[LBN4] the maximum of known names is kept", async () => {
  const stored = new Stored();
  const names = new NamesHost(stored, { boardNamesMax: 4 }, { log, metrics, onNew });
  for (const user of ["ann", "bob", "cy"]) await names.receiveName({ room: ROOM, user: user as UserId, name: user.toUpperCase() });
  await names.namesOf(ROOM, ["cy", "bob"]);
  expect(stored.reads).toBe(0);
  expect((await names.namesOf(ROOM, ["ann"])).get("ann")).toBe("ANN");
  expect(stored.reads).toBe(1);
});

test("[LBN7] an answer has all names, also with more users than names are known, and while others are announced", async () => {
  const stored = new Stored();
  const users = Array.from({ length: 20 }, (_, index) => `user-${index}`);
  for (const user of users) stored.names.set(user, user.toUpperCase());
  const names = new NamesHost(stored, { boardNamesMax: 4 }, { log, metrics, onNew });
  const expected = new Map(users.map((user) => [user, user.toUpperCase()]));
  expect(await names.namesOf(ROOM, users)).toEqual(expected);
  const reading = names.namesOf(ROOM, users);
  for (const user of ["x", "y", "z"]) await names.receiveName({ room: ROOM, user: user as UserId, name: user });
  expect(await reading).toEqual(expected);
});

test("[LBN5] boards are published again when a name changes, and not when the name was known", async () => {
  const changed: RoomKey[] = [];
  const names = new NamesHost(new Stored(), { boardNamesMax: 10 }, { log, metrics, onNew: (room) => changed.push(room) });
  for (const name of ["Ann", "Ann", "Anne"]) await names.receiveName({ room: ROOM, user: ANN, name });
  expect(changed).toEqual([ROOM, ROOM]);
});

test("[LBN6] a name beyond the maximum of a room or tenant is counted once for each", async () => {
  const stored = new Stored();
  stored.countMax = 1;
  const names = new NamesHost(stored, { boardNamesMax: 10 }, { log, metrics, onNew });
  metrics.refusedNames.reset();
  for (const user of ["ann", "bob", "bob"]) await names.receiveName({ room: ROOM, user: user as UserId, name: user });
  const counted = (await metrics.refusedNames.get()).values.map(({ labels, value }) => [labels.owner, value]);
  expect(counted).toEqual([
    ["room", 1],
    ["tenant", 1],
  ]);
});
