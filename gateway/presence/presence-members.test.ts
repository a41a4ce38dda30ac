import { expect, test } from "vitest";

import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import type { ConnectionId } from "../ports.ts";
import { inStep, PresenceMembers } from "./presence-members.ts";

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

/** Members with ann, whom the owner has acknowledged. */
function acknowledged(): PresenceMembers {
  const members = new PresenceMembers(options, 0);
  members.enter(connection(1), member("ann"), at(0));
  members.receiveAck(members.takeDue(epoch, at(0))!.version);
  return members;
}

test("[PRG20] the first announcement is a snapshot, the next ones are changes, and nothing follows once all is acknowledged", () => {
  const members = new PresenceMembers(options, 6);
  members.enter(connection(1), member("ann"), at(0));
  expect(members.takeDue(epoch, at(0))).toMatchObject({ version: 7, snapshot: true, entered: [{ name: "ann" }], exited: [] });
  members.receiveAck(7);
  members.enter(connection(2), member("bob"), at(10));
  members.leave(connection(1));
  expect(members.takeDue(epoch, at(100))).toMatchObject({
    version: 8,
    snapshot: false,
    entered: [{ name: "bob" }],
    exited: [member("ann").client],
  });
  members.receiveAck(8);
  expect(members.takeDue(epoch, at(4_000))).toBeUndefined();
});

test("[PRG70] a client that joins and leaves between two announcements is announced as left only", () => {
  const members = acknowledged();
  members.enter(connection(2), member("bob"), at(10));
  members.leave(connection(2));
  expect(members.takeDue(epoch, at(100))).toMatchObject({ snapshot: false, entered: [], exited: [member("bob").client] });
});

test("[PRG71] a member that the room has removed is reported once", () => {
  const members = acknowledged();
  members.receiveNumber(member("ann").client, 7);
  expect([members.receiveGone(() => true), members.receiveGone(() => false), members.receiveGone(() => false)]).toEqual([
    false,
    true,
    false,
  ]);
});

test("[PRG21] an unacknowledged version is repeated as a snapshot", () => {
  const members = acknowledged();
  members.receiveOtherParticipant();
  members.enter(connection(2), member("bob"), at(100));
  members.takeDue(epoch, at(100));
  expect(members.takeDue(epoch, at(599))).toBeUndefined();
  expect(members.takeDue(epoch, at(600))).toMatchObject({ version: 2, snapshot: true, entered: [{ name: "ann" }, { name: "bob" }] });
  members.receiveAck(1);
  expect(members.takeDue(epoch, at(1_100))).toMatchObject({ version: 2, snapshot: true });
});

test("[PRG22] the gateway asks a quiet owner whether it still knows the members, without listing them", () => {
  const members = acknowledged();
  expect(members.takeDue(epoch, at(5_000))).toMatchObject({ version: 1, snapshot: false, entered: [], exited: [] });
  expect(members.unackedSince).toBe(5_000);
});

test("[PRG23] an owner that missed something receives a snapshot, but not more often than every 100 ms", () => {
  const members = acknowledged();
  members.resendAll();
  expect(members.takeDue(epoch, at(100))).toMatchObject({ snapshot: true });
  members.resendAll();
  expect(members.takeDue(epoch, at(150))).toBeUndefined();
  expect(members.takeDue(epoch, at(200))).toMatchObject({ snapshot: true });
});

test("[PRG27] a new owner receives a snapshot immediately, even just after the former one", () => {
  const members = acknowledged();
  members.resendAll();
  members.takeDue(epoch, at(100));
  members.receiveNewOwner();
  expect(members.takeDue(3 as Epoch, at(110))).toMatchObject({ epoch: 3, snapshot: true, entered: [{ name: "ann" }] });
});

test("[PRG24] a client with two connections is one member until the last connection leaves", () => {
  const members = acknowledged();
  members.enter(connection(2), member("ann"), at(10));
  expect(members.soleConnection(member("ann").client)).toBeUndefined();
  expect(members.leave(connection(1))).toBeUndefined();
  expect(members.soleConnection(member("ann").client)).toBe(2);
  expect(members.takeDue(epoch, at(100))).toBeUndefined();
  expect(members.leave(connection(2))).toBe(member("ann").client);
  expect(members.takeDue(epoch, at(100))).toMatchObject({ exited: [member("ann").client] });
});

test("[PRG25] the room is done when it has no members and the owner has acknowledged that", () => {
  const members = acknowledged();
  members.leave(connection(1));
  expect(members.isDone).toBe(false);
  const message = members.takeDue(epoch, at(100))!;
  expect(members.isDone).toBe(false);
  members.receiveAck(message.version);
  expect(members.isDone).toBe(true);
});

test("[PRG26] a member without input for a minute is a spectator until its next input", () => {
  const members = acknowledged();
  members.findSpectators(at(59_999));
  expect(members.of(connection(1))?.spectator).toBe(false);
  members.findSpectators(at(60_000));
  expect(members.takeDue(epoch, at(60_000))).toMatchObject({ entered: [{ spectator: true }] });
  members.receiveActivity(connection(1), at(60_100));
  expect(members.takeDue(epoch, at(60_100))).toMatchObject({ entered: [{ spectator: false }] });
});

test("[PRG52] the first change is announced immediately, and the ones that follow it are announced together", () => {
  const members = acknowledged();
  members.enter(connection(2), member("bob"), at(1_000));
  expect(members.dueAt).toBeLessThanOrEqual(1_000);
  expect(members.takeDue(epoch, at(1_000))).toMatchObject({ entered: [{ name: "bob" }] });
  members.receiveAck(2);
  members.enter(connection(3), member("cat"), at(1_010));
  members.enter(connection(4), member("dan"), at(1_050));
  members.leave(connection(1));
  expect(members.dueAt).toBe(1_100);
  expect(members.takeDue(epoch, at(1_099))).toBeUndefined();
  expect(members.takeDue(epoch, at(1_100))).toMatchObject({
    version: 3,
    snapshot: false,
    entered: [{ name: "cat" }, { name: "dan" }],
    exited: [member("ann").client],
  });
});

test("[PRG58] joins within half a second after the first one into an empty room are announced together", () => {
  const members = acknowledged();
  for (const id of [2, 3]) members.enter(connection(id), member(`joiner-${id}`), at(id * 100));
  expect(members.dueAt).toBe(500);
  expect(members.takeDue(epoch, at(499))).toBeUndefined();
  expect(members.takeDue(epoch, at(500))).toMatchObject({ snapshot: false, entered: [{ name: "joiner-2" }, { name: "joiner-3" }] });
  members.receiveAck(2);
  members.enter(connection(4), member("dan"), at(600));
  expect(members.takeDue(epoch, at(600))).toMatchObject({ entered: [{ name: "dan" }] });
});

test("[PRG59] a leave during batched joins is announced immediately, together with the joins so far", () => {
  const members = acknowledged();
  members.enter(connection(2), member("bob"), at(100));
  members.enter(connection(3), member("cat"), at(150));
  members.leave(connection(1));
  expect(members.takeDue(epoch, at(150))).toMatchObject({ entered: [{ name: "bob" }, { name: "cat" }], exited: [member("ann").client] });
});

test("[PRG60] a room with old members does not count as empty for a new owner", () => {
  const members = acknowledged();
  members.findSpectators(at(5_000));
  members.receiveNewOwner();
  expect(members.takeDue(3 as Epoch, at(6_000))).toMatchObject({ snapshot: true });
  members.receiveAck(1);
  members.enter(connection(2), member("bob"), at(6_100));
  expect(members.takeDue(3 as Epoch, at(6_100))).toMatchObject({ entered: [{ name: "bob" }] });
});

test("[PRG57] a connection belongs to its member until it leaves or joins as another one, however many members there are", () => {
  for (const others of [3, 40]) {
    const members = acknowledged();
    for (let index = 0; index < others; index++) members.enter(connection(10 + index), member(`other-${index}-`), at(0));
    members.enter(connection(2), member("ann"), at(0));
    expect(members.leave(connection(1))).toBeUndefined();
    expect(members.enter(connection(2), member("bob"), at(0))).toBe(member("ann").client);
    expect(members.leave(connection(10))).toBe(member("other-0-").client);
    expect([1, 2, 10, 11].map((id) => members.of(connection(id))?.name)).toEqual([undefined, "bob", undefined, "other-1-"]);
    expect(members.receiveActivity(connection(10), at(0))).toBe(false);
  }
});

test("[STEP1] everything due within the same 250 ms is done together, and never early", () => {
  expect([4_751, 4_900, 5_000].map(inStep)).toEqual([5_000, 5_000, 5_000]);
  expect(inStep(5_001)).toBe(5_250);
});

test("[PRG72] a member that enters again is announced again only if its user, name, rights or status changed", () => {
  for (const change of [{ user: "anna" as UserId }, { name: "Anna" }, { canWrite: false }, { spectator: true }]) {
    const members = acknowledged();
    members.enter(connection(2), { ...member("ann"), ...change }, at(10));
    expect(members.takeDue(epoch, at(500))).toMatchObject({ snapshot: false, entered: [change], exited: [] });
  }
  const same = acknowledged();
  same.enter(connection(2), member("ann"), at(10));
  expect(same.takeDue(epoch, at(500))).toBeUndefined();
});

test("[PRG73] a member that enters again over its connection counts as active, and leaves with it", () => {
  const members = acknowledged();
  members.enter(connection(1), member("ann"), at(59_000));
  members.findSpectators(at(60_000));
  expect(members.of(connection(1))?.spectator).toBe(false);
  members.findSpectators(at(119_000));
  expect(members.of(connection(1))?.spectator).toBe(true);
  expect(members.connectionsOf(member("ann").client)).toEqual([1]);
});
