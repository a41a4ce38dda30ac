import { expect, test } from "vitest";

import type { PresenceMember } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import { decodeDelta } from "../../shared/wire/presence.ts";
import { OwnerPresence, type OwnerPresenceEffect, type OwnerPresenceInput } from "./presence.ts";

const [here, there] = ["gw-here", "gw-there"] as GatewayId[] as [GatewayId, GatewayId];
const epoch = 3 as Epoch;
const moments = { next: (now: Millis) => now, after: (now: Millis, ticks: number) => (now + 50 * ticks) as Millis };
const options = {
  participantsMax: 100,
  presenceBytesMax: 10_000,
  presenceGatherMs: 80,
  gatewaySilenceMsMax: 2_000,
  presenceSilenceMsMax: 12_000,
  beaconMs: 1_000,
  beaconsWhenQuiet: 3,
  flatParticipantsMax: 2,
  flatAgainParticipants: 1,
  modeMsMin: 5_000,
};
const client = (name: string) => name.padEnd(16, "1") as ClientId;
const member = (name: string): PresenceMember => ({ client: client(name), user: name as UserId, name, canWrite: true, spectator: false });
const members = (
  gateway: GatewayId,
  version: number,
  entered: string[],
  more: { snapshot?: boolean; exited?: string[]; epoch?: Epoch } = {},
): OwnerPresenceInput => ({
  kind: "members",
  gateway,
  epoch: more.epoch ?? epoch,
  version,
  snapshot: more.snapshot ?? version === 1,
  entered: entered.map(member),
  exited: (more.exited ?? []).map(client),
});

/** A room that has been owned for long, at 1000 ms. */
class Owned {
  readonly presence = new OwnerPresence(epoch, options, moments, 0 as Millis);
  now = 0;
  constructor(at = 1_000) {
    for (; this.now < at; this.now += 10) this.presence.receivePresenceInput({ kind: "tick" }, this.now as Millis);
  }
  receiveAll(...inputs: OwnerPresenceInput[]): OwnerPresenceEffect[] {
    return inputs.flatMap((input) => this.presence.receivePresenceInput(input, this.now as Millis));
  }
  /** All effects of the given time. */
  pass(ms: number): OwnerPresenceEffect[] {
    const effects: OwnerPresenceEffect[] = [];
    for (const end = this.now + ms; this.now < end; this.now += 5)
      if ((this.presence.dueAt ?? Number.POSITIVE_INFINITY) <= this.now) effects.push(...this.receiveAll({ kind: "tick" }));
    return effects;
  }
}

const broadcasts = (effects: OwnerPresenceEffect[], kind: string) =>
  effects.filter((effect) => effect.kind === "broadcast" && effect.message.kind === kind);
const answers = (effects: OwnerPresenceEffect[], kind: string) =>
  effects.filter((effect) => effect.kind === "answer" && effect.answer.kind === kind);
const namesIn = (effects: OwnerPresenceEffect[]) =>
  effects.flatMap((effect) =>
    effect.kind === "broadcast" && effect.message.kind === "delta"
      ? [decodeDelta(effect.message.delta)!.present.map(({ name }) => name)]
      : [],
  );

test("[PRS10] the room announces the first join at once, and all joins of the next 50 ms together", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann"]));
  expect(namesIn(room.pass(5))).toEqual([["ann"]]);
  room.receiveAll(members(here, 2, ["bob"]));
  room.receiveAll(members(there, 1, ["cid"]));
  expect(namesIn(room.pass(40))).toEqual([]);
  expect(namesIn(room.pass(20))).toEqual([["bob", "cid"]]);
  expect(namesIn(room.pass(500))).toEqual([]);
});

test("[PRS11] a new owner asks the gateways for their members, and collects answers for a while before it announces them", () => {
  const room = new Owned(0);
  const first = room.pass(5);
  expect(broadcasts(first, "head")).toMatchObject([{ message: { epoch, number: 0 } }]);
  room.receiveAll(members(here, 7, ["ann"], { snapshot: true }), { kind: "sync", gateway: here });
  room.receiveAll(members(there, 4, ["bob"], { snapshot: true }), { kind: "sync", gateway: there });
  expect(room.pass(60)).toEqual([]);
  const outcome = room.pass(40);
  expect(namesIn(outcome)).toEqual([["ann", "bob"]]);
  expect(answers(outcome, "snapshot")).toMatchObject([
    { gateway: here, answer: { number: 1 } },
    { gateway: there, answer: { number: 1 } },
  ]);
});

test("[PRS12] a gateway's member messages are applied once and in order, and requested again after a gap", () => {
  const room = new Owned();
  expect(room.receiveAll(members(here, 1, ["ann"]))).toMatchObject([{ answer: { kind: "acked", version: 1 } }]);
  expect(room.receiveAll(members(here, 3, [], { exited: ["ann"] }))).toMatchObject([{ answer: { kind: "missed" } }]);
  expect(room.receiveAll(members(here, 2, ["bob"]))).toMatchObject([{ answer: { kind: "acked", version: 2 } }]);
  expect(room.receiveAll(members(here, 1, ["cid"]))).toMatchObject([{ answer: { kind: "acked", version: 2 } }]);
  expect(room.receiveAll(members(here, 3, ["bob"], { snapshot: true }))).toMatchObject([{ answer: { kind: "acked", version: 3 } }]);
  expect(namesIn(room.pass(60))).toEqual([["bob"]]);
});

test("[PRS13] an unknown gateway that only asks whether it is known is asked for all its members", () => {
  const room = new Owned();
  expect(room.receiveAll(members(here, 5, [], { snapshot: false }))).toMatchObject([{ answer: { kind: "missed" } }]);
  expect(room.receiveAll(members(there, 1, [], { snapshot: false }))).toMatchObject([{ answer: { kind: "missed" } }]);
});

test("[PRS14] a lost gateway's members leave, except those that another gateway also has", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann", "bob"]), members(there, 1, ["bob"]));
  room.pass(100);
  room.receiveAll({ kind: "gateway-lost", gateway: here });
  room.pass(100);
  expect(room.presence.participants).toBe(1);
});

test("[PRS20] after a reconnect all gateways are asked again, and a gateway that has left the room leaves with its members", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann"]), members(there, 1, ["bob"]));
  room.pass(100);
  expect(answers(room.receiveAll({ kind: "connection-lost" }), "missed")).toMatchObject([{ gateway: here }, { gateway: there }]);
  room.receiveAll(members(here, 1, ["ann"], { snapshot: true }));
  expect(room.presence.participants).toBe(2);
  room.pass(1_900);
  expect(room.presence.participants).toBe(2);
  room.pass(150);
  expect(room.presence.account.gateways).toEqual({ [here]: 1 });
  expect(room.presence.participants).toBe(1);
});

test("[PRS21] a gateway that has sent nothing about its members for long is asked; its members leave only if it has left the room", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann"]), members(there, 1, ["bob"]));
  room.pass(8_000);
  room.receiveAll(members(here, 1, [], { snapshot: false }));
  room.pass(3_990);
  expect(room.presence.hasSilent(room.now as Millis)).toBe(false);
  room.pass(10);
  expect(room.presence.hasSilent(room.now as Millis)).toBe(true);
  expect(answers(room.receiveAll({ kind: "look" }), "missed")).toMatchObject([{ gateway: there }]);
  expect(room.presence.hasSilent(room.now as Millis)).toBe(false);
  room.pass(2_010);
  expect(room.presence.account.gateways).toEqual({ [here]: 1 });

  room.pass(8_000);
  expect(answers(room.receiveAll({ kind: "look" }), "missed")).toMatchObject([{ gateway: here }]);
  room.receiveAll(members(here, 1, ["ann"], { snapshot: true }));
  room.pass(2_010);
  expect(room.presence.participants).toBe(1);
});

test("[PRS31] a gateway without members receives no deltas and is not asked, until it has members or asks for a snapshot", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann"]), members(there, 1, ["bob"]));
  room.pass(100);
  room.receiveAll(members(there, 2, [], { exited: ["bob"] }));
  room.pass(100);
  const recipientsOfJoin = (version: number) => {
    room.receiveAll(members(here, version, [`joins${version}`]));
    return broadcasts(room.pass(100), "delta").map((effect) => effect.kind === "broadcast" && effect.to);
  };
  expect(recipientsOfJoin(2)).toEqual([[here]]);
  room.pass(12_000);
  expect(answers(room.receiveAll({ kind: "look" }), "missed")).toMatchObject([{ gateway: here }]);
  room.receiveAll({ kind: "sync", gateway: there });
  expect(recipientsOfJoin(3)).toEqual([[here, there]]);
});

test("[PRS32] a lost gateway receives the delta that removes its members, then nothing", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann"]), members(there, 1, ["bob"]));
  room.pass(100);
  room.receiveAll({ kind: "connection-lost" }, { kind: "gateway-lost", gateway: there });
  const removal = broadcasts(room.pass(100), "delta");
  expect(removal).toMatchObject([{ to: [here, there] }]);
  room.receiveAll(members(here, 1, ["ann"], { snapshot: true }), members(here, 2, ["cid"]));
  const later = room.pass(1_000);
  expect(broadcasts(later, "delta")).toMatchObject([{ to: [here] }]);
  expect(answers(later, "missed")).toEqual([]);
});

test("[PRS15] late or repeated states do not replace newer ones", () => {
  const room = new Owned();
  const states = (number: number, tool: string): OwnerPresenceInput => ({
    kind: "states",
    gateway: here,
    number,
    fresh: true,
    states: [{ client: client("ann"), fields: [{ name: "tool", value: new TextEncoder().encode(tool) }] }],
  });
  room.receiveAll(members(here, 1, ["ann"]), states(1, "pen"), states(3, "brush"), states(2, "eraser"), states(1, "pen"));
  const [delta] = broadcasts(room.pass(5), "delta");
  expect(
    delta?.kind === "broadcast" && delta.message.kind === "delta"
      ? decodeDelta(delta.message.delta)!.states[0]!.fields[0]!.value
      : undefined,
  ).toEqual(new TextEncoder().encode("brush"));
});

test("[PRS16] after its last delta the room sends its version three times, then nothing", () => {
  const room = new Owned(10_000);
  expect(room.presence.dueAt).toBeUndefined();
  room.receiveAll(members(here, 1, ["ann"]));
  expect(broadcasts(room.pass(950), "head"), "the delta itself has the number").toEqual([]);
  expect(broadcasts(room.pass(10_000), "head")).toMatchObject([
    { message: { number: 1 } },
    { message: { number: 1 } },
    { message: { number: 1 } },
  ]);
  expect(room.presence.dueAt).toBeUndefined();
});

test("[PRS17] a room above its size changes its mode, announces it at once, and returns when it may", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann", "bob", "cid"]));
  const grown = room.pass(20);
  expect(grown.filter(({ kind }) => kind === "mode-changed")).toMatchObject([{ from: "flat", to: "hierarchical", participants: 3 }]);
  expect(broadcasts(grown, "head")).toMatchObject([{ message: { status: { mode: "hierarchical" } } }]);
  room.receiveAll(members(here, 2, [], { exited: ["ann", "bob"] }));
  expect(room.pass(4_900).filter(({ kind }) => kind === "mode-changed")).toEqual([]);
  const shrunk = room.pass(200);
  expect(shrunk.filter(({ kind }) => kind === "mode-changed")).toMatchObject([{ to: "flat" }]);
  expect(broadcasts(shrunk, "head"), "without any delta").toMatchObject([{ message: { status: { mode: "flat" } } }]);
});

test("[PRS30] a mode change names its cause, the number of participants now, and the highest number since the change before", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann", "bob", "cid"]));
  const grown = room.pass(20);
  room.receiveAll(members(here, 2, ["dan", "eve"]));
  room.pass(100);
  room.receiveAll(members(here, 3, [], { exited: ["ann", "bob", "cid", "dan"] }));
  const shrunk = room.pass(6_000);
  room.receiveAll(members(here, 4, ["ann", "bob", "cid"]));
  const changes = [...grown, ...shrunk, ...room.pass(6_000)].filter(({ kind }) => kind === "mode-changed");
  expect(changes.map((change) => change.kind === "mode-changed" && [change.to, change.participants, change.peak, change.cause])).toEqual([
    ["hierarchical", 3, 3, "new-owner"],
    ["flat", 1, 5, "shrank"],
    ["hierarchical", 4, 4, "grew"],
  ]);
});

test("[PRS18] a gateway that knows of a later owner makes this owner read the log", () => {
  const room = new Owned();
  expect(room.receiveAll(members(here, 1, ["ann"], { epoch: (epoch + 1) as Epoch }))).toContainEqual({ kind: "deposed" });
});

test("[PRS19] a thousand joins within a second make about twenty deltas, and one answer to each gateway's message", () => {
  const room = new Owned();
  const outcome: OwnerPresenceEffect[] = [];
  const gateways = Array.from({ length: 4 }, (_, index) => `gw-${index}` as GatewayId);
  for (let turn = 0; turn < 250; turn++) {
    for (const gateway of gateways) outcome.push(...room.receiveAll(members(gateway, turn + 1, [`p${turn}-${gateway}`])));
    outcome.push(...room.pass(5));
  }
  outcome.push(...room.pass(100));
  expect(broadcasts(outcome, "delta").length).toBeLessThan(30);
  expect(answers(outcome, "acked")).toHaveLength(1_000);
});

test("[PRS25] a gateway that is lost before it has sent its members leaves no state and receives no answer", () => {
  const room = new Owned();
  const inPart = (part: number): OwnerPresenceInput => ({
    kind: "members",
    gateway: here,
    epoch,
    version: 1,
    snapshot: true,
    entered: [member(`ann${part}`)],
    exited: [],
    partOf: { part, parts: 2 },
  });
  room.receiveAll(members(there, 1, ["bob"]));
  room.pass(5);
  room.receiveAll(inPart(1), { kind: "sync", gateway: here }, { kind: "gateway-lost", gateway: here });
  expect(answers(room.pass(500), "snapshot")).toEqual([]);
  expect(answers(room.receiveAll(inPart(2)), "missed")).toHaveLength(1);
  expect(room.presence.participants).toBe(1);
});

test("[PRS29] a gateway whose question was lost is asked again, so that its members do not seem to leave", () => {
  const room = new Owned();
  room.receiveAll(members(here, 1, ["ann"]), members(there, 1, ["bob"]));
  room.pass(100);
  expect(answers(room.receiveAll({ kind: "connection-lost" }), "missed")).toHaveLength(2); // Both are lost.
  const asked = answers(room.pass(600), "missed");
  expect(asked).toMatchObject([{ gateway: here }, { gateway: there }]);
  room.receiveAll(members(here, 1, ["ann"], { snapshot: true }));
  expect(answers(room.receiveAll(members(there, 1, [], { snapshot: false })), "missed"), "it confirms its members only").toMatchObject([
    { gateway: there },
  ]);
  room.receiveAll(members(there, 1, ["bob"], { snapshot: true }));
  room.pass(3_000);
  expect(room.presence.participants).toBe(2);
});
