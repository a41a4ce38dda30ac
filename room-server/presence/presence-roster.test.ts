import { expect, test } from "vitest";

import type { PresenceMember } from "../../shared/bus/presence-messages.ts";
import type { ClientId, GatewayId, UserId } from "../../shared/ids.ts";
import { stepsDuring } from "../../shared/testing/counted-steps.ts";
import { Roster } from "./presence-roster.ts";

const [here, there] = ["gw-here", "gw-there"] as GatewayId[] as [GatewayId, GatewayId];
const [ann, bob] = ["annannannannann1", "bobbobbobbobbob1"] as ClientId[] as [ClientId, ClientId];
const member = (client: ClientId, changes: Partial<PresenceMember> = {}): PresenceMember => ({
  client,
  user: client.slice(0, 3) as UserId,
  name: client.slice(0, 3),
  canWrite: true,
  spectator: false,
  ...changes,
});
const field = (name: string, text: string) => ({ name, value: new TextEncoder().encode(text) });
const roster = (options: Partial<{ participantsMax: number; presenceBytesMax: number }> = {}) =>
  new Roster({ participantsMax: 100, presenceBytesMax: 10_000, ...options });

function shown(of: Roster, client: ClientId): Record<string, string> | undefined {
  const { present, states } = of.snapshot();
  const participant = present.find((one) => one.client === client);
  if (participant === undefined) return undefined;
  return Object.fromEntries(
    states
      .filter(({ number }) => number === participant.number)
      .flatMap(({ fields }) => fields.map(({ name, value }) => [name, new TextDecoder().decode(value)])),
  );
}

test("[PRS1] a participant at two gateways keeps its number, and leaves when the last gateway removes it", () => {
  const room = roster();
  room.enter(here, member(ann));
  const { number } = room.takeDelta().present[0]!;
  room.enter(there, member(ann));
  room.exit(here, ann);
  expect(room.takeDelta()).toEqual({ snapshot: false, present: [], gone: [], states: [] });
  room.exit(there, ann);
  expect(room.takeDelta().gone).toEqual([number]);
});

test("[PRS2] a number is never used for another participant, nor used again", () => {
  const room = roster();
  room.enter(here, member(ann));
  room.exit(here, ann);
  room.enter(here, member(bob));
  room.enter(here, member(ann));
  expect(room.snapshot().present.map(({ client, number }) => [client, number])).toEqual([
    [bob, 2],
    [ann, 3],
  ]);
});

test("[PRS3] a member that changed twice appears once in a delta, and an unchanged member does not", () => {
  const room = roster();
  room.enter(here, member(ann));
  room.setFields(here, ann, [field("tool", "pen")], true);
  room.takeDelta();
  room.setFields(here, ann, [field("tool", "brush")], true);
  room.setFields(here, ann, [field("tool", "eraser")], true);
  expect(room.takeDelta().states).toEqual([{ number: 1, fields: [field("tool", "eraser")] }]);
  room.setFields(here, ann, [field("tool", "eraser")], true);
  room.enter(here, member(ann));
  expect(room.hasDelta).toBe(false);
});

test("[PRS4] a gateway that a client has left cannot change its state any more", () => {
  const room = roster();
  room.enter(here, member(ann));
  room.setFields(here, ann, [field("tool", "pen")], true);
  room.enter(there, member(ann));
  room.setFields(there, ann, [field("tool", "brush")], true);
  room.setFields(here, ann, [field("tool", "pen")], false);
  expect(shown(room, ann)).toEqual({ tool: "brush" });
});

test("[PRS5] the state that a client showed at its previous gateway is removed when it shows another state at the next", () => {
  const room = roster();
  room.enter(here, member(ann));
  room.setFields(here, ann, [field("tool", "pen"), field("color", "red")], true);
  room.enter(there, member(ann));
  room.setFields(there, ann, [field("tool", "pen")], true);
  expect(shown(room, ann)).toEqual({ tool: "pen" });
});

test("[PRS5] the state at a gateway that lost the client is removed, and the next gateway's repeated state counts from then on", () => {
  const room = roster();
  room.enter(here, member(ann));
  room.setFields(here, ann, [field("tool", "pen")], true);
  room.enter(there, member(ann));
  room.setFields(there, ann, [field("tool", "brush")], false);
  expect(shown(room, ann)).toEqual({ tool: "pen" });
  room.exit(here, ann);
  expect(shown(room, ann)).toEqual({});
  room.setFields(there, ann, [field("tool", "brush")], false);
  expect(shown(room, ann)).toEqual({ tool: "brush" });
});

test("[PRS6] a gateway cannot change the state of a client that it does not have", () => {
  const room = roster();
  room.enter(here, member(ann));
  room.setFields(there, ann, [field("tool", "pen")], true);
  expect(shown(room, ann)).toEqual({});
});

test("[PRS7] a member above the room's maximum is announced once another has left", () => {
  const room = roster({ participantsMax: 1 });
  expect(room.enter(here, member(ann))).toBeUndefined();
  expect(room.enter(here, member(bob))).toBe("participants");
  expect([shown(room, bob), room.size]).toEqual([undefined, 1]);
  const { bytes } = room;
  room.setFields(here, bob, [field("tool", "pen")], true);
  expect([room.bytes, room.takeDelta().states], "nothing of a member that is not announced").toEqual([bytes, []]);
  room.exit(here, ann);
  expect(shown(room, bob)).toEqual({});
});

test("[PRS8] a state beyond the room's bytes is not shown; a removed state releases its bytes", () => {
  const room = roster({ presenceBytesMax: 1_000 });
  room.enter(here, member(ann));
  const empty = room.bytes;
  expect(room.setFields(here, ann, [field("avatar", "x".repeat(700))], true)).toBeUndefined();
  expect(room.setFields(here, ann, [field("banner", "x".repeat(700))], true)).toBe("presence-bytes");
  expect(Object.keys(shown(room, ann)!)).toEqual(["avatar"]);
  room.setFields(here, ann, [field("avatar", "")], true);
  expect(room.bytes).toBe(empty);
  room.exit(here, ann);
  expect(room.bytes).toBe(0);
});

test("[PRS8] a state above the room's limit of bytes is shown once bytes are free, and a long name does not block a short one", () => {
  const room = roster({ presenceBytesMax: 1_000 });
  room.enter(here, member(ann));
  room.setFields(here, ann, [field("avatar", "x".repeat(800))], true);
  expect(room.enter(here, member(bob))).toBe("presence-bytes");
  room.takeDelta();
  room.setFields(here, ann, [field("avatar", "x".repeat(500))], true);
  expect(
    room.takeDelta().present.map(({ client }) => client),
    "a value shrank",
  ).toEqual([bob]);

  room.exit(here, bob);
  room.setFields(here, ann, [field("avatar", "")], true);
  room.enter(here, member(ann, { name: "x".repeat(280) }));
  expect(room.enter(here, member(bob))).toBe("presence-bytes");
  room.enter(here, member(ann));
  expect(shown(room, bob), "a name shrank").toEqual({});

  const long = "longlonglonglon1" as ClientId;
  room.exit(here, bob);
  room.setFields(here, ann, [field("avatar", "x".repeat(800))], true);
  expect(room.enter(here, member(long, { name: "x".repeat(320) }))).toBe("presence-bytes");
  expect(room.enter(here, member(bob))).toBe("presence-bytes");
  room.exit(here, ann);
  expect([shown(room, long), shown(room, bob), room.size], "a participant left").toEqual([undefined, {}, 1]);
  room.exit(here, long);
  room.exit(here, bob);
  expect([room.size, room.bytes]).toEqual([0, 0]);
});

test("[PRS9] a participant is a spectator if all gateways that have it report so", () => {
  const room = roster();
  room.enter(here, member(ann, { spectator: true }));
  expect(room.snapshot().present).toMatchObject([{ spectator: true }]);
  room.enter(there, member(ann));
  expect(room.snapshot().present).toMatchObject([{ spectator: false }]);
  room.exit(there, ann);
  expect(room.snapshot().present).toMatchObject([{ spectator: true }]);
});

test("[PRS24] a changed name counts with its new length; a name beyond the room's bytes is not shown, the right to write is", () => {
  const room = roster({ presenceBytesMax: 1_000 });
  room.enter(here, member(ann));
  const short = room.bytes;
  expect(room.enter(here, member(ann, { name: "x".repeat(200) }))).toBeUndefined();
  expect(room.bytes).toBe(short + 3 * 197);
  expect(room.enter(here, member(ann, { name: "x".repeat(400) }))).toBe("presence-bytes");
  expect(room.bytes).toBe(short + 3 * 197);
  expect(room.enter(here, member(ann, { name: "y".repeat(400), canWrite: false }))).toBe("presence-bytes");
  expect(room.snapshot().present).toMatchObject([{ name: "x".repeat(200), canWrite: false }]);
  room.enter(here, member(ann));
  expect([room.bytes, room.snapshot().present[0]!.name]).toEqual([short, "ann"]);
  room.exit(here, ann);
  expect(room.bytes).toBe(0);
});

test("[PRS41] the work for changed fields grows with their number, not with its square", () => {
  const count = 60;
  const states = (text: string) => Array.from({ length: count }, (_, index) => field(`f${index}`, text));
  const room = roster();
  room.enter(here, member(ann));
  room.setFields(here, ann, states("before"), true);
  const steps = stepsDuring(() => {
    room.setFields(here, ann, states("after"), true);
    room.takeDelta();
  });
  expect(steps).toBeLessThanOrEqual(4 * count);
});
