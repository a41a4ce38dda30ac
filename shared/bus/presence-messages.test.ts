import { getHeapSpaceStatistics } from "node:v8";

import fc from "fast-check";
import { expect, test } from "vitest";

import { clientId, epoch, gatewayId, number, payload, userId } from "../../test/wire/arbitraries.ts";
import { almostRight } from "../../test/wire/mutate.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, UserId } from "../ids.ts";
import {
  decodePresenceFromServer,
  decodePresenceToOwner,
  encodePresenceFromServer,
  encodePresenceToOwner,
  isPresenceToOwner,
  membersInParts,
  PRESENCE_MESSAGE_BYTES_MAX,
  statesInParts,
  type PresenceFromServer,
  type PresenceToOwner,
} from "./presence-messages.ts";
import {
  decodePresenceDown,
  decodePresenceUp,
  encodePresenceDown,
  encodePresenceUp,
  type PresenceDown,
  type PresenceUp,
} from "./presence-batches.ts";
import { Tag } from "./record.ts";

const member = fc.record({
  client: clientId,
  user: userId,
  name: fc.string({ maxLength: 20 }),
  canWrite: fc.boolean(),
  spectator: fc.boolean(),
});
const field = fc.record({ name: fc.constantFrom("name", "color", "tool"), value: payload });
const status = fc.record({
  mode: fc.constantFrom("flat" as const, "hierarchical" as const),
  participants: number,
  presencePerSecond: number,
  shed: number,
});
const heardEpoch = number as fc.Arbitrary<number> as fc.Arbitrary<Epoch>;

const toOwner: fc.Arbitrary<PresenceToOwner> = fc.oneof(
  fc.record({
    kind: fc.constant("members" as const),
    gateway: gatewayId,
    epoch: heardEpoch,
    version: number,
    snapshot: fc.boolean(),
    entered: fc.array(member, { maxLength: 4 }),
    exited: fc.array(clientId, { maxLength: 4 }),
  }),
  fc.record({
    kind: fc.constant("members" as const),
    gateway: gatewayId,
    epoch: heardEpoch,
    version: number,
    snapshot: fc.boolean(),
    entered: fc.array(member, { maxLength: 4 }),
    exited: fc.array(clientId, { maxLength: 4 }),
    partOf: fc.record({ part: number, parts: number }),
  }),
  fc.record({
    kind: fc.constant("states" as const),
    gateway: gatewayId,
    number,
    fresh: fc.boolean(),
    states: fc.array(fc.record({ client: clientId, fields: fc.array(field, { maxLength: 3 }) }), { maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant("sync" as const), gateway: gatewayId }),
);
const fromServer: fc.Arbitrary<PresenceFromServer> = fc.oneof(
  fc.record({ kind: fc.constant("delta" as const), epoch, number, delta: payload }),
  fc.record({ kind: fc.constant("head" as const), epoch, number, status }),
  fc.record({ kind: fc.constant("acked" as const), epoch, version: number, number }),
  fc.record({ kind: fc.constant("missed" as const), epoch }),
  fc.record({ kind: fc.constant("snapshot" as const), epoch, number, status, delta: payload }),
  fc.record({ kind: fc.constant("not-owner" as const) }),
);
const entries = fc.array(
  fc.record({ room: fc.constantFrom("acme.notes", "acme.=2e=2ex").map((key) => key as RoomKey), message: payload }),
  {
    maxLength: 4,
  },
);
const up: fc.Arbitrary<PresenceUp> = fc.record({ kind: fc.constant("up" as const), gateway: gatewayId, sentAtMs: number, entries });
const down: fc.Arbitrary<PresenceDown> = fc.record({
  kind: fc.constant("down" as const),
  timing: fc.record({ tickMs: number, slots: number, sendAtMs: number }),
  entries,
});

const languages = [
  {
    name: "to the owner",
    message: toOwner as fc.Arbitrary<unknown>,
    encode: (message: unknown) => encodePresenceToOwner(message as PresenceToOwner),
    decode: decodePresenceToOwner,
  },
  {
    name: "from a room server",
    message: fromServer as fc.Arbitrary<unknown>,
    encode: (message: unknown) => encodePresenceFromServer(message as PresenceFromServer),
    decode: decodePresenceFromServer,
  },
  {
    name: "of a batch to a room server",
    message: up as fc.Arbitrary<unknown>,
    encode: (message: unknown) => encodePresenceUp(message as PresenceUp),
    decode: decodePresenceUp,
  },
  {
    name: "of a batch to a gateway",
    message: down as fc.Arbitrary<unknown>,
    encode: (message: unknown) => encodePresenceDown(message as PresenceDown),
    decode: decodePresenceDown,
  },
] as const;

for (const { name, message, encode, decode } of languages) {
  test(`[BUS3] every message of presence ${name} is read as it was written`, () => {
    fc.assert(
      fc.property(message, (written) => {
        expect(decode(encode(written))).toEqual(written);
      }),
    );
  });

  test(`[BUS4] bytes that are almost a message of presence ${name} are refused or read, and never throw`, () => {
    const right = fc.sample(message, { numRuns: 50, seed: 1 }).map(encode);
    for (const bytes of almostRight(20261121, right, 5_000)) decode(bytes);
  });
}

test("[BUS5] the first byte distinguishes presence from edits", () => {
  fc.assert(
    fc.property(toOwner, (written) => {
      expect(isPresenceToOwner(encodePresenceToOwner(written))).toBe(true);
    }),
  );
  for (const tag of [Tag.edits, Tag.catchUpRequest, Tag.resubmit, Tag.firstEdit, Tag.checkOwnership])
    expect(isPresenceToOwner(Uint8Array.of(tag))).toBe(false);
  expect(isPresenceToOwner(new Uint8Array(0))).toBe(false);
});

test("[BUS6] repeated messages about the members of a quiet room share one hidden class", () => {
  const say = (times: number): void => {
    for (let version = 1; version <= times; version++)
      encodePresenceToOwner({
        kind: "members",
        gateway: "gateway-1" as GatewayId,
        epoch: 1 as Epoch,
        version,
        snapshot: false,
        entered: [],
        exited: [],
      });
  };
  const oldBytes = (): number => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")!.space_used_size;
  say(2_000); // By then V8 knows the code.
  const before = oldBytes();
  say(20_000);
  expect((oldBytes() - before) / 20_000).toBeLessThan(100); // V8 would create hidden classes in old pages: 270 bytes a message.
});

const clients = (count: number) => Array.from({ length: count }, (_, index) => String(index).padStart(16, "c") as ClientId);

test("[PBM1] members are one message, and several in order only if they are too large for one", () => {
  const users = clients(2_000).map((client) => ({ client, user: "u".repeat(128) as UserId, name: "n", canWrite: true, spectator: false }));
  const head = { kind: "members" as const, gateway: "g" as GatewayId, epoch: 3 as Epoch, version: 7, snapshot: true };
  for (const few of [
    { ...head, entered: [], exited: [] },
    { ...head, entered: users.slice(0, 1), exited: [] },
    { ...head, entered: users.slice(0, 2), exited: clients(2) },
  ])
    expect(membersInParts(few)).toEqual([few]);
  for (const many of [
    { ...head, entered: users, exited: clients(1) },
    { ...head, entered: users.slice(0, 1), exited: clients(20_000) },
  ]) {
    const parts = membersInParts(many);
    expect(parts.length).toBeGreaterThan(2);
    expect(parts.map(({ partOf }) => partOf)).toEqual(parts.map((_, index) => ({ part: index + 1, parts: parts.length })));
    expect(parts.flatMap(({ entered }) => entered)).toEqual(many.entered);
    expect(parts.flatMap(({ exited }) => exited)).toEqual(many.exited);
    for (const part of parts) {
      expect(part).toMatchObject(head);
      expect(encodePresenceToOwner(part).byteLength).toBeLessThan(PRESENCE_MESSAGE_BYTES_MAX + 32);
    }
  }
});

test("[PBM2] the states of a message fit its size, and their order stays", () => {
  const value = new Uint8Array(1_000);
  const states = clients(600).map((client) => ({ client, fields: [{ name: "color", value }] }));
  const parts = statesInParts(states);
  expect(parts.length).toBe(3);
  expect(parts.flat()).toEqual(states);
  for (const part of parts) {
    const bytes = encodePresenceToOwner({ kind: "states", gateway: "g" as GatewayId, number: 1, fresh: true, states: part }).byteLength;
    expect(bytes).toBeLessThan(PRESENCE_MESSAGE_BYTES_MAX + 32);
  }
});
