import { setImmediate as turn } from "node:timers/promises";

import type { Msg, MsgCallback } from "nats";
import { expect, test } from "vitest";

import type { LocalOwner, ToOwner } from "../../../shared/bus/envelope.ts";
import { subjectsOf } from "../../../shared/bus/subjects.ts";
import type { Epoch, GatewayId, RoomKey } from "../../../shared/ids.ts";
import { turnEnd } from "../../../shared/io/event-loop.ts";
import type { NatsConnection } from "../../../shared/io/nats.ts";
import type { Backbone } from "../../ports.ts";
import { natsRoomOwners } from "./nats-rooms.ts";

const subjects = subjectsOf("test");
const gateway = "gw" as GatewayId;
const room = (name: string) => `acme.${name}` as RoomKey;

test("[NAT19] rooms that are followed in one turn are subscribed in one write at its end; rooms left by then are not", async () => {
  const writes: string[][] = [];
  let written: string[] = [];
  const write = (command: string): void => {
    if (written.push(command) === 1) queueMicrotask(() => writes.push(written.splice(0))); // As nats.js batches its writes.
  };
  let lastId = 0;
  const connection = {
    subscribe: (subject: string) => {
      write(`sub ${subject}`);
      const id = ++lastId;
      return { getID: () => id, unsubscribe: () => write(`unsub ${subject}`) };
    },
    flush: async () => write("ping"),
  };
  const { rooms } = natsRoomOwners(connection as unknown as NatsConnection, subjects, gateway, turnEnd());
  const followed: Promise<void>[] = [];
  for (const name of ["one", "two", "left", "back"]) {
    followed.push(rooms.follow(room(name)));
    await Promise.resolve(); // uWebSockets.js runs microtasks after each client's message.
  }
  rooms.unfollow(room("left"));
  rooms.unfollow(room("back"));
  followed.push(rooms.follow(room("back")));
  expect(writes).toEqual([]);
  await Promise.all(followed);
  expect(writes).toEqual([["one", "two", "back"].map((name) => `sub ${subjects.editsOut(room(name))}`), ["ping"]]);
  rooms.unfollow(room("one"));
  await Promise.resolve();
  expect(writes.at(-1)).toEqual([`unsub ${subjects.editsOut(room("one"))}`]);
});

test("[NAT20] a message arrives with its room until the room is no longer followed", async () => {
  const received: [string, number][] = [];
  const backbone = { receiveFromOwner: (from: RoomKey, bytes: Uint8Array) => void received.push([from, bytes[0]!]) } as unknown as Backbone;
  let lastId = 0;
  const callbacks = new Map<number, MsgCallback<Msg>>();
  const connection = {
    subscribe: (_: string, { callback }: { callback: MsgCallback<Msg> }) => {
      const id = ++lastId;
      callbacks.set(id, callback);
      return { getID: () => id, unsubscribe: () => {} };
    },
    flush: async () => {},
    status: async function* () {},
  };
  const subscriptions = natsRoomOwners(connection as unknown as NatsConnection, subjects, gateway, turnEnd());
  await subscriptions.start(backbone); // Takes the first subscription id, for replies.
  await Promise.all(["one", "two"].map((name) => subscriptions.rooms.follow(room(name))));
  const deliver = (id: number): void => void callbacks.get(id)!(null, { sid: id, data: Uint8Array.of(id) } as Msg);
  for (const id of [3, 2]) deliver(id);
  subscriptions.rooms.unfollow(room("one"));
  for (const id of [2, 3]) deliver(id);
  expect(received).toEqual([
    [room("two"), 3],
    [room("one"), 2],
    [room("two"), 3],
  ]);
});

test("[NAT23] an edit goes to the owner of the same process or over NATS, never both", async () => {
  const published: string[] = [];
  const connection = {
    subscribe: () => ({ getID: () => 1, unsubscribe: () => {} }),
    publish: (subject: string) => void published.push(subject),
    flush: async () => {},
    status: async function* () {},
  };
  const message: ToOwner = { kind: "check-ownership" };
  let handedOver = 0;
  const owner = { openEpoch: 6 as Epoch | undefined, receiveMessage: () => void (handedOver += 1) };
  const localOwners = new Map<RoomKey, LocalOwner>([[room("one"), owner]]);
  const { rooms } = natsRoomOwners(connection as unknown as NatsConnection, subjects, gateway, { ...turnEnd(), localOwners });
  await rooms.follow(room("one"));

  rooms.sendToOwner(room("one"), message, 6 as Epoch);
  await turn();
  expect([handedOver, published]).toEqual([1, []]);
  rooms.sendToOwner(room("one"), message, 7 as Epoch); // The owner of epoch 7 is another process.
  rooms.sendToOwner(room("one"), message, 5 as Epoch); // The gateway does not know this owner yet.
  await turn();
  owner.openEpoch = undefined; // The room is being handed over, so the other server needs the message too.
  rooms.sendToOwner(room("one"), message, 6 as Epoch);
  await turn();
  expect([handedOver, published]).toEqual([1, Array.from({ length: 3 }, () => subjects.toOwner(room("one")))]);
});

test("[NAT32] the messages of one turn to owners are written together at its end, in order, with those that the end itself causes", async () => {
  const writes: string[][] = [];
  let written: string[] = [];
  const connection = {
    subscribe: () => ({ getID: () => 1, unsubscribe: () => {} }),
    publish: (subject: string) => {
      if (written.push(subject) === 1) queueMicrotask(() => writes.push(written.splice(0))); // As nats.js batches its writes.
    },
    flush: async () => {},
  };
  const turnEnds = turnEnd();
  const { rooms } = natsRoomOwners(connection as unknown as NatsConnection, subjects, gateway, turnEnds);
  const send = (name: string): void => rooms.sendToOwner(room(name), { kind: "check-ownership" }, 1 as Epoch);
  await Promise.all(["one", "two", "left"].map((name) => rooms.follow(room(name))));
  turnEnds.endOfTurn(() => send("one"));
  for (const name of ["two", "left", "one"]) {
    send(name);
    await Promise.resolve(); // uWebSockets.js runs microtasks after each client's message.
  }
  rooms.unfollow(room("left"));
  expect(writes).toEqual([]);
  await turn();
  expect(writes).toEqual([["two", "one", "one"].map((name) => subjects.toOwner(room(name)))]);
});

test("[NAT33] the messages of the turn in which a gateway stops are written before its connection closes", async () => {
  const written: string[] = [];
  const connection = {
    subscribe: () => ({ getID: () => 1, unsubscribe: () => {} }),
    publish: (subject: string) => void written.push(subject),
    flush: async () => {},
  };
  const owners = natsRoomOwners(connection as unknown as NatsConnection, subjects, gateway, turnEnd());
  await owners.rooms.follow(room("one"));
  owners.rooms.sendToOwner(room("one"), { kind: "check-ownership" }, 1 as Epoch);
  owners.stop();
  expect(written).toEqual([subjects.toOwner(room("one"))]);
  await turn();
  expect(written).toHaveLength(1);
});
