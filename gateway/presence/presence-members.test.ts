import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";
import { PresenceMembers } from "./presence-members.ts";

const options = { gateway: "gw-here" as GatewayId, repeatMs: 500, keepaliveMs: 5_000, spectatorAfterMs: 60_000 };
const epoch = 2 as Epoch;
const at = (ms: number) => ms as Millis;
const connection = (id: number) => id as ConnectionId;
const member = (name: string) => ({
  client: name.padEnd(16, "1") as ClientId,
  user: name as UserId,
  name,
  canWrite: true,
  spectator: false,
});

/** With ann, whom the owner has heard of. */
function heard(): PresenceMembers {
  const members = new PresenceMembers(options, 0);
  members.enter(connection(1), member("ann"), at(0));
  members.receiveHeard(members.takeDue(epoch, at(0))!.version);
  return members;
}

test("[PRG20] the first is said whole, a change as such, and nothing else while it is heard", () => {
  const members = new PresenceMembers(options, 6);
  members.enter(connection(1), member("ann"), at(0));
  expect(members.takeDue(epoch, at(0))).toMatchObject({ version: 7, whole: true, entered: [{ name: "ann" }], exited: [] });
  members.receiveHeard(7);
  members.enter(connection(2), member("bob"), at(10));
  members.leave(connection(1));
  expect(members.takeDue(epoch, at(100))).toMatchObject({
    version: 8,
    whole: false,
    entered: [{ name: "bob" }],
    exited: [member("ann").client],
  });
  members.receiveHeard(8);
  expect(members.takeDue(epoch, at(4_000))).toBeUndefined();
});

test("[PRG21] unheard, all of it is said again", () => {
  const members = heard();
  members.receiveOther();
  members.enter(connection(2), member("bob"), at(100));
  members.takeDue(epoch, at(100));
  expect(members.takeDue(epoch, at(599))).toBeUndefined();
  expect(members.takeDue(epoch, at(600))).toMatchObject({ version: 2, whole: true, entered: [{ name: "ann" }, { name: "bob" }] });
  members.receiveHeard(1);
  expect(members.takeDue(epoch, at(1_100))).toMatchObject({ version: 2, whole: true });
});

test("[PRG22] a quiet owner is asked whether it still knows, with nobody in the question", () => {
  const members = heard();
  expect(members.takeDue(epoch, at(5_000))).toMatchObject({ version: 1, whole: false, entered: [], exited: [] });
  expect(members.unheardSince).toBe(5_000);
});

test("[PRG23] an owner that missed something is told all, but not more often than it can be of use", () => {
  const members = heard();
  members.sayAllAgain();
  expect(members.takeDue(epoch, at(100))).toMatchObject({ whole: true });
  members.sayAllAgain();
  expect(members.takeDue(epoch, at(150))).toBeUndefined();
  expect(members.takeDue(epoch, at(200))).toMatchObject({ whole: true });
});

test("[PRG27] what the owner before was told a moment ago does not hold up what a new one is told", () => {
  const members = heard();
  members.sayAllAgain();
  members.takeDue(epoch, at(100));
  members.receiveNewOwner();
  expect(members.takeDue(3 as Epoch, at(110))).toMatchObject({ epoch: 3, whole: true, entered: [{ name: "ann" }] });
});

test("[PRG24] a client on two connections is one member, until the last is gone", () => {
  const members = heard();
  members.enter(connection(2), member("ann"), at(10));
  expect(members.soleConnection(member("ann").client)).toBeUndefined();
  expect(members.leave(connection(1))).toBeUndefined();
  expect(members.soleConnection(member("ann").client)).toBe(2);
  expect(members.takeDue(epoch, at(100))).toBeUndefined();
  expect(members.leave(connection(2))).toBe(member("ann").client);
  expect(members.takeDue(epoch, at(100))).toMatchObject({ exited: [member("ann").client] });
});

test("[PRG25] it is done once nobody is here and the owner has heard so", () => {
  const members = heard();
  members.leave(connection(1));
  expect(members.isDone).toBe(false);
  const said = members.takeDue(epoch, at(100))!;
  expect(members.isDone).toBe(false);
  members.receiveHeard(said.version);
  expect(members.isDone).toBe(true);
});

test("[PRG26] a member without input for a minute is a spectator, until its next", () => {
  const members = heard();
  members.findSpectators(at(59_999));
  expect(members.of(connection(1))?.spectator).toBe(false);
  members.findSpectators(at(60_000));
  expect(members.takeDue(epoch, at(60_000))).toMatchObject({ entered: [{ spectator: true }] });
  members.receiveInput(connection(1), at(60_100));
  expect(members.takeDue(epoch, at(60_100))).toMatchObject({ entered: [{ spectator: false }] });
});

test("[PRG52] the first change is said as it comes, those that follow it at once together", () => {
  const members = heard();
  members.enter(connection(2), member("bob"), at(1_000));
  expect(members.dueAt).toBeLessThanOrEqual(1_000);
  expect(members.takeDue(epoch, at(1_000))).toMatchObject({ entered: [{ name: "bob" }] });
  members.receiveHeard(2);
  members.enter(connection(3), member("cat"), at(1_010));
  members.enter(connection(4), member("dan"), at(1_050));
  members.leave(connection(1));
  expect(members.dueAt).toBe(1_100);
  expect(members.takeDue(epoch, at(1_099))).toBeUndefined();
  expect(members.takeDue(epoch, at(1_100))).toMatchObject({
    version: 3,
    whole: false,
    entered: [{ name: "cat" }, { name: "dan" }],
    exited: [member("ann").client],
  });
});

test("[PRG58] who comes half a second after the first into an empty room is said with all who do", () => {
  const members = heard();
  for (const id of [2, 3]) members.enter(connection(id), member(`crowd-${id}`), at(id * 100));
  expect(members.dueAt).toBe(500);
  expect(members.takeDue(epoch, at(499))).toBeUndefined();
  expect(members.takeDue(epoch, at(500))).toMatchObject({ whole: false, entered: [{ name: "crowd-2" }, { name: "crowd-3" }] });
  members.receiveHeard(2);
  members.enter(connection(4), member("dan"), at(600));
  expect(members.takeDue(epoch, at(600))).toMatchObject({ entered: [{ name: "dan" }] });
});

test("[PRG59] while a crowd comes, who leaves is said at once, and with it who has come", () => {
  const members = heard();
  members.enter(connection(2), member("bob"), at(100));
  members.enter(connection(3), member("cat"), at(150));
  members.leave(connection(1));
  expect(members.takeDue(epoch, at(150))).toMatchObject({ entered: [{ name: "bob" }, { name: "cat" }], exited: [member("ann").client] });
});

test("[PRG60] a room that somebody has been in for long is no empty one to an owner that is new", () => {
  const members = heard();
  members.findSpectators(at(5_000));
  members.receiveNewOwner();
  expect(members.takeDue(3 as Epoch, at(6_000))).toMatchObject({ whole: true });
  members.receiveHeard(1);
  members.enter(connection(2), member("bob"), at(6_100));
  expect(members.takeDue(3 as Epoch, at(6_100))).toMatchObject({ entered: [{ name: "bob" }] });
});

test("[PRG57] few or many, a connection is a member's until it leaves or is another's", () => {
  for (const others of [3, 40]) {
    const members = heard();
    for (let index = 0; index < others; index++) members.enter(connection(10 + index), member(`other-${index}-`), at(0));
    members.enter(connection(2), member("ann"), at(0));
    expect(members.leave(connection(1))).toBeUndefined();
    expect(members.enter(connection(2), member("bob"), at(0))).toBe(member("ann").client);
    expect(members.leave(connection(10))).toBe(member("other-0-").client);
    expect([1, 2, 10, 11].map((id) => members.of(connection(id))?.name)).toEqual([undefined, "bob", undefined, "other-1-"]);
    expect(members.receiveInput(connection(10), at(0))).toBe(false);
  }
});
