import { expect, test } from "vitest";

import { encodePresenceToOwner, type PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { ClientId, Epoch, GatewayId, Millis, UserId } from "../../shared/ids.ts";
import { encodeDelta, type PresenceDelta } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import { PresenceUpward } from "./presence-outbox.ts";
import { PresenceView } from "./presence-view.ts";

const options = {
  gateway: "gw-here" as GatewayId,
  repeatMs: 500,
  keepaliveMs: 5_000,
  spectatorAfterMs: 60_000,
  memberBytesMax: 1_000,
  memberFieldsMax: 10,
  flushMs: 15,
  ownerSilenceMsMax: 2_000,
};
const MANY = 5_000;
const NATS_BYTES_MAX = 1024 ** 2;
const LONG_NAME = "\u2654".repeat(256);
const client = (index: number) => `client${String(index).padStart(10, "0")}` as ClientId;

function withMany(): PresenceUpward {
  const up = new PresenceUpward(options, new PresenceView(), 0, 0 as Millis);
  for (let index = 0; index < MANY; index++)
    up.enter(
      index as ConnectionId,
      { client: client(index), user: `user-${index}` as UserId, name: LONG_NAME, canWrite: true, spectator: false },
      0 as Millis,
    );
  return up;
}

const members = (messages: readonly PresenceToOwner[]) => messages.flatMap((message) => (message.kind === "members" ? [message] : []));

test("[PRG42] a field that a new owner did not receive is sent again, even if the view still shows the former owner's copy of it", () => {
  const view = new PresenceView();
  const up = new PresenceUpward(options, view, 0, 0 as Millis);
  const ann = { client: client(1), user: "ann" as UserId, name: "ann", canWrite: true, spectator: false };
  const cursor = { name: "cursor", value: Uint8Array.of(7) };
  const states = (messages: readonly PresenceToOwner[]) => messages.flatMap((message) => (message.kind === "states" ? message.states : []));
  const receiveSnapshot = (epoch: number, delta: PresenceDelta): void => {
    view.receiveEpoch(epoch as Epoch);
    for (const update of view.receiveSnapshot({ number: 1, delta: encodeDelta(delta) })) up.receiveDelta(update.delta);
  };
  const present = [{ ...ann, number: 1 }];

  up.enter(1 as ConnectionId, ann, 0 as Millis);
  up.receiveFields(1 as ConnectionId, [cursor], 0 as Millis);
  up.takeDue(30, 0 as Millis);
  receiveSnapshot(1, { snapshot: true, present, gone: [], states: [{ number: 1, fields: [cursor] }] });

  view.receiveEpoch(2 as Epoch);
  up.receiveNewOwner();
  expect(states(up.takeDue(30, 1_000 as Millis).messages)).toHaveLength(1); // The message is lost.
  up.watch(1_100 as Millis);
  receiveSnapshot(2, { snapshot: true, present, gone: [], states: [] });
  up.watch(2_000 as Millis);
  expect(states(up.takeDue(30, 2_000 as Millis).messages)).toEqual([{ client: ann.client, fields: [cursor] }]);
});

test("[PRG55] a clock that a y-websocket client renews by itself is sent, and does not count as input", () => {
  const up = new PresenceUpward(options, new PresenceView(), 0, 0 as Millis);
  const connection = 1 as ConnectionId;
  const clockAt = (value: number) => ({ name: "y-websocket", value: Uint8Array.of(value) });
  const isSpectator = (now: number) => {
    up.watch(now as Millis);
    return up.members.of(connection)!.spectator;
  };
  up.enter(connection, { client: client(1), user: "ann" as UserId, name: "ann", canWrite: true, spectator: false }, 0 as Millis);
  for (let now = 15_000; now <= 60_000; now += 15_000) up.receiveFields(connection, [clockAt(now / 15_000)], now as Millis);
  expect(isSpectator(60_000)).toBe(true);
  const { messages } = up.takeDue(30, 60_000 as Millis);
  expect(messages.flatMap((message) => (message.kind === "states" ? message.states : []))).toEqual([
    { client: client(1), fields: [clockAt(4)] },
  ]);
  up.receiveFields(connection, [{ name: "caret", value: Uint8Array.of(1) }, clockAt(5)], 61_000 as Millis);
  expect(isSpectator(120_999)).toBe(false);
});

test("[PRG43] late fields of a client's former connection do not replace those of its current one", () => {
  const up = new PresenceUpward(options, new PresenceView(), 0, 0 as Millis);
  const ann = { client: client(1), user: "ann" as UserId, name: "ann", canWrite: true, spectator: false };
  const [before, now] = [1 as ConnectionId, 2 as ConnectionId];
  const cursorAt = (place: number) => [{ name: "cursor", value: Uint8Array.of(place) }];
  up.enter(before, ann, 0 as Millis);
  up.enter(now, ann, 0 as Millis);
  up.receiveFields(now, cursorAt(2), 0 as Millis);
  up.receiveFields(before, cursorAt(1), 0 as Millis);
  const { messages } = up.takeDue(30, 0 as Millis);
  expect(messages.flatMap((message) => (message.kind === "states" ? message.states : []))).toEqual([
    { client: ann.client, fields: cursorAt(2) },
  ]);
});

test("[PRG40] very many members with long names are announced in parts that NATS accepts, all of one version", () => {
  const { messages } = withMany().takeDue(30, 0 as Millis);
  const sent = members(messages);
  for (const message of sent) expect(encodePresenceToOwner(message).byteLength).toBeLessThan(NATS_BYTES_MAX / 2);
  expect(sent.flatMap(({ entered }) => entered.map((member) => member.client))).toEqual(
    Array.from({ length: MANY }, (_, index) => client(index)),
  );
  expect(sent.map(({ partOf }) => partOf)).toEqual(sent.map((_, index) => ({ part: index + 1, parts: sent.length })));
  expect(new Set(sent.map(({ version, snapshot }) => `${version} ${snapshot}`)).size).toBe(1);
});

test("[PRG50] very many fields with long names, or removals, are sent in parts that NATS accepts", () => {
  const up = withMany();
  const fields = Array.from({ length: 10 }, (_, index) => ({ name: `${index}`.padEnd(63, "\u2654"), value: new Uint8Array(0) }));
  for (let index = 0; index < MANY; index++) up.receiveFields(index as ConnectionId, fields, 0 as Millis);
  const sent = up.takeDue(30, 0 as Millis).messages.filter(({ kind }) => kind === "states");
  for (const message of sent) expect(encodePresenceToOwner(message).byteLength).toBeLessThan(NATS_BYTES_MAX / 2);
  expect(sent.flatMap((message) => (message.kind === "states" ? message.states : []))).toHaveLength(MANY);
});

test("[PRG41] very many leaves at once are announced in parts, a few in one message", () => {
  const up = withMany();
  up.takeDue(30, 0 as Millis);
  up.members.receiveAck(up.members.version);
  up.leave(0 as ConnectionId);
  expect(members(up.takeDue(30, 100 as Millis).messages)).toMatchObject([{ snapshot: false, exited: [client(0)] }]);
  for (let index = 1; index < MANY; index++) up.leave(index as ConnectionId);
  const sent = members(up.takeDue(30, 200 as Millis).messages);
  expect(sent.flatMap(({ exited }) => exited)).toHaveLength(MANY - 1);
});

test("[PRG44] a room is checked within half a second of a message until the owner answers, and joins and leaves do not delay that", () => {
  const up = new PresenceUpward(options, new PresenceView(), 0, 0 as Millis);
  const enter = (index: number, now: Millis) =>
    up.enter(index as ConnectionId, { client: client(index), user: "ann" as UserId, name: "ann", canWrite: true, spectator: false }, now);
  up.members.receiveOtherParticipant();
  expect(up.watchAt).toBe(5_000);
  for (let index = 1; index <= 48; index++) {
    const now = (index * 100) as Millis;
    enter(index, now);
    up.takeDue(30, now);
    expect(up.watchAt).toBe(Math.min(5_000, now + 500));
    up.members.receiveAck(up.members.version);
    expect(up.watchAt).toBe(5_000);
  }
  up.watch(5_000 as Millis);
  expect(up.watchAt).toBe(10_000);
});

test("[PRG45] while the owner does not answer, the room is checked at a steady interval until the owner counts as silent", () => {
  const up = new PresenceUpward(options, new PresenceView(), 0, 0 as Millis);
  up.enter(1 as ConnectionId, { client: client(1), user: "ann" as UserId, name: "ann", canWrite: true, spectator: false }, 0 as Millis);
  up.takeDue(30, 0 as Millis);
  const looks: number[] = [];
  for (let isSilent = false; !isSilent;) {
    const at = up.watchAt;
    looks.push(at);
    isSilent = up.watch(at);
    up.takeDue(30, at);
  }
  expect(looks).toEqual([500, 1_000, 1_500, 2_000]);
});

test("[PRG53] fields of a new member are sent neither before its announcement nor later than it", () => {
  const up = new PresenceUpward(options, new PresenceView(), 0, 0 as Millis);
  const enter = (index: number) =>
    up.enter(
      index as ConnectionId,
      { client: client(index), user: "ann" as UserId, name: "ann", canWrite: true, spectator: false },
      0 as Millis,
    );
  enter(1);
  up.takeDue(30, 0 as Millis);
  up.members.receiveAck(up.members.version);
  enter(2);
  enter(3);
  up.receiveFields(1 as ConnectionId, [{ name: "cursor", value: Uint8Array.of(1) }], 20 as Millis);
  expect(up.takeDue(30, 20 as Millis).messages).toMatchObject([{ kind: "states", states: [{ client: client(1) }] }]);
  up.receiveFields(3 as ConnectionId, [{ name: "cursor", value: Uint8Array.of(3) }], 40 as Millis);
  expect(up.takeDue(30, 40 as Millis).messages).toMatchObject([
    { kind: "members", version: 2, snapshot: false, entered: [{ client: client(2) }, { client: client(3) }] },
    { kind: "states", states: [{ client: client(3) }] },
  ]);
});

test("[PRG61] participants over other gateways see joins immediately, however many there are", () => {
  const view = new PresenceView();
  const up = new PresenceUpward(options, view, 0, 0 as Millis);
  const person = (index: number) => ({ client: client(index), user: "ann" as UserId, name: "ann", canWrite: true, spectator: false });
  const receiveDelta = (number: number, ...present: readonly number[]): void => {
    const delta = encodeDelta({
      snapshot: false,
      present: present.map((index) => ({ ...person(index), number: index })),
      gone: [],
      states: [],
    });
    for (const update of view.receiveDelta({ number, delta })) up.receiveDelta(update.delta);
  };
  view.receiveEpoch(1 as Epoch);
  view.receiveSnapshot({ number: 0, delta: encodeDelta({ snapshot: true, present: [], gone: [], states: [] }) });

  up.enter(1 as ConnectionId, person(1), 0 as Millis);
  up.takeDue(30, 0 as Millis);
  up.members.receiveAck(up.members.version);
  receiveDelta(1, 1);
  up.enter(2 as ConnectionId, person(2), 100 as Millis);
  expect(up.members.dueAt).toBe(500);
  receiveDelta(2, 7);
  expect(up.members.dueAt).toBeLessThanOrEqual(100);
  expect(members(up.takeDue(30, 100 as Millis).messages)).toMatchObject([{ entered: [{ client: client(2) }] }]);
});

test("[PRG54] the encoded snapshot of a room without joins is not kept", () => {
  const view = new PresenceView();
  const up = new PresenceUpward(options, view, 0, 0 as Millis);
  const { snapshot } = view;
  expect(view.snapshot).toBe(snapshot);
  up.watch(5_000 as Millis);
  expect(view.snapshot).not.toBe(snapshot);
  expect(view.snapshot).toEqual(snapshot);
});
