/** Broadcast messages between providers on a model server. */

import { expect, test } from "vitest";
import * as Y from "yjs";

import type { ClientId, RoomId } from "../../shared/ids.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";
import { MINUTE } from "../testing/test-page.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import { YjsProvider } from "../yjs/yjs-provider.ts";
import { broadcastsOf, type RoomBroadcasts } from "./room-broadcasts.ts";

const serverOn = (): ModelServer => new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });

class Talker {
  readonly provider: YjsProvider;
  readonly broadcasts: RoomBroadcasts;
  readonly received: unknown[] = [];

  constructor(server: ModelServer, seed: number) {
    this.provider = new YjsProvider({ url: "ws://h", token: "t", room: "notes", doc: new Y.Doc() }, server.world(seed));
    this.broadcasts = broadcastsOf(this.provider);
    this.broadcasts.on("message", ({ client, message }) => {
      expect(this.provider.participants.get(client)?.self, "no message of its own").toBe(false);
      this.received.push(message);
    });
  }
}

test("[BRO1] messages reach everybody else once and in order, also several sent in one task", async () => {
  const server = serverOn();
  const [ann, bob, cid] = [new Talker(server, 1), new Talker(server, 2), new Talker(server, 3)];
  await server.clock.advance(1_000);
  for (const message of [1, { two: 2 }, "three"]) ann.broadcasts.send(message);
  await server.clock.advance(1_000);
  ann.broadcasts.send(4);
  bob.broadcasts.send("from bob");
  await server.clock.advance(MINUTE);
  ann.broadcasts.send(5);
  await server.clock.advance(1_000);
  expect(ann.received).toEqual(["from bob"]);
  expect(bob.received).toEqual([1, { two: 2 }, "three", 4, 5]);
  expect(cid.received.filter((message) => message !== "from bob")).toEqual(bob.received);
});

test("[BRO2] a participant who enters later receives only later messages, and the field is removed", async () => {
  const server = serverOn();
  const ann = new Talker(server, 1);
  await server.clock.advance(1_000);
  ann.broadcasts.send("early");
  await server.clock.advance(100);
  const bob = new Talker(server, 2);
  await server.clock.advance(1_000);
  ann.broadcasts.send("late");
  await server.clock.advance(MINUTE);
  expect(bob.received).toEqual(["late"]);
  expect([...bob.provider.participants.values()].map(({ fields }) => "coroom" in fields)).toEqual([false, false]);
  expect([...bob.provider.awareness.getStates().values()]).toEqual([{}, {}]);
});

test("[BRO3] after a reconnect no message is received twice", async () => {
  const server = serverOn();
  const [ann, bob] = [new Talker(server, 1), new Talker(server, 2)];
  await server.clock.advance(1_000);
  ann.broadcasts.send("before");
  await server.clock.advance(200);
  server.cut();
  await server.clock.advance(10_000);
  ann.broadcasts.send("after");
  await server.clock.advance(1_000);
  expect(bob.received).toEqual(["before", "after"]);
});

test("[BRO4] the newest messages that fit are sent; one that is too large throws, and is not sent", async () => {
  const server = serverOn();
  const [ann, bob] = [new Talker(server, 1), new Talker(server, 2)];
  await server.clock.advance(1_000);
  expect(() => ann.broadcasts.send("x".repeat(3_000))).toThrow("more than 2048 bytes");
  for (let index = 0; index < 10; index++) ann.broadcasts.send(`${index}${"x".repeat(490)}`);
  await server.clock.advance(1_000);
  expect(bob.received.map((message) => (message as string)[0])).toEqual(["6", "7", "8", "9"]);
});

test("[BRO5] the field's name is reserved, what other clients show in it is checked, and awareness does not contain it", async () => {
  const server = serverOn();
  const [ann, bob] = [new Talker(server, 1), new Talker(server, 2)];
  await server.clock.advance(1_000);
  expect(() => ann.provider.presence.set({ coroom: 1 })).toThrow("reserved");
  const updates: unknown[] = [];
  bob.provider.awareness.on("change", (change: unknown) => updates.push(change));
  for (const value of ["text", null, [], { last: "1", messages: [1] }, { last: 2 ** 60, messages: [] }, { last: 1, messages: 3 }]) {
    const fields = [{ name: "coroom", value: new TextEncoder().encode(JSON.stringify(value)) }];
    server.sendPresenceDelta("notes" as RoomId, server.presence().show(ann.provider.client!, fields));
  }
  ann.broadcasts.send("real");
  await server.clock.advance(1_000);
  expect([bob.received, bob.provider.awareness.getStates().get(ann.provider.awareness.clientID)]).toEqual([["real"], {}]);
});

test("[BRO6] a room has one sender of broadcasts, also of a RoomConnection, and messages from before are not received", async () => {
  const server = serverOn();
  const ann = new Talker(server, 1);
  const room = new RoomConnection({ url: "ws://h", token: "t", room: "notes" }, server.world(2));
  await server.clock.advance(1_000);
  ann.broadcasts.send("early");
  await server.clock.advance(1_000);
  const received: unknown[] = [];
  broadcastsOf(room).on("message", ({ message }) => received.push(message));
  expect([broadcastsOf(room) === broadcastsOf(room), broadcastsOf(ann.provider) === ann.broadcasts]).toEqual([true, true]);
  ann.broadcasts.send("late");
  broadcastsOf(room).send("from the room");
  await server.clock.advance(1_000);
  expect([received, ann.received]).toEqual([["late"], ["from the room"]]);
});

test("[BRO7] a sender that leaves and enters again, for example to move to another gateway, repeats no message", async () => {
  const server = serverOn();
  const [ann, bob] = [new Talker(server, 1), new Talker(server, 2)];
  await server.clock.advance(1_000);
  ann.broadcasts.send(1);
  ann.broadcasts.send(2);
  await server.clock.advance(200);
  ann.provider.disconnect();
  ann.broadcasts.send(3);
  await server.clock.advance(200);
  expect(bob.provider.participants.size).toBe(1);
  ann.provider.connect();
  await server.clock.advance(1_000);
  ann.broadcasts.send(4);
  await server.clock.advance(1_000);
  expect(bob.received).toEqual([1, 2, 3, 4]);
});

/** A participant enters, and shows messages in the same delta. */
function enterShowing(server: ModelServer, client: ClientId, shown: { page?: number; last: number; messages: readonly unknown[] }): void {
  const { present } = server.presence().enter(client);
  const value = new TextEncoder().encode(JSON.stringify(shown));
  const { states } = server.presence().show(client, [{ name: "coroom", value }]);
  server.sendPresenceDelta("notes" as RoomId, { snapshot: false, present, gone: [], states });
}

test("[BRO8] a message that arrives together with its sender reaches those who were in the room before", async () => {
  const server = serverOn();
  const ann = new Talker(server, 1);
  await server.clock.advance(1_000);
  enterShowing(server, "cid-cid-cid-cid1" as ClientId, { page: 7, last: 1, messages: ["hello"] });
  await server.clock.advance(1_000);
  const bob = new Talker(server, 2);
  await server.clock.advance(1_000);
  expect([ann.received, bob.received]).toEqual([["hello"], []]);
});

test("[BRO9] a page that is loaded again counts from 1, also under the client id of the previous page", async () => {
  const server = serverOn();
  const ann = new Talker(server, 1);
  await server.clock.advance(1_000);
  const cid = "cid-cid-cid-cid1" as ClientId;
  for (const page of [7, 8]) {
    enterShowing(server, cid, { page, last: 2, messages: [1, 2] });
    server.sendPresenceDelta("notes" as RoomId, server.presence().leave(cid));
  }
  await server.clock.advance(1_000);
  expect(ann.received, "each page's messages once").toEqual([1, 2, 1, 2]);
});

test("[BRO10] messages from before are not received by who asks for broadcasts between the join and the first snapshot", async () => {
  const server = serverOn();
  const ann = new Talker(server, 1);
  await server.clock.advance(1_000);
  ann.broadcasts.send("early");
  await server.clock.advance(100);
  const room = new RoomConnection({ url: "ws://h", token: "t", room: "notes" }, server.world(2));
  const received: unknown[] = [];
  room.on("status", ({ status }) => {
    if (status === "connected") broadcastsOf(room).on("message", ({ message }) => received.push(message));
  });
  await server.clock.advance(1_000);
  ann.broadcasts.send("late");
  await server.clock.advance(1_000);
  expect(received).toEqual(["late"]);
});

test("[BRO11] each message is received once, also while more participants show one than are remembered after they left", async () => {
  const server = serverOn();
  const ann = new Talker(server, 1);
  await server.clock.advance(1_000);
  const crowd = Array.from({ length: 2_500 }, (_, index) => `cid-cid-cid-${1_000 + index}` as ClientId);
  for (const client of crowd) enterShowing(server, client, { page: 7, last: 1, messages: [client] });
  for (const client of crowd) server.sendPresenceDelta("notes" as RoomId, server.presence().enter(client, { spectator: true }));
  await server.clock.advance(1_000);
  expect([ann.received.length, new Set(ann.received).size]).toEqual([crowd.length, crowd.length]);
});
