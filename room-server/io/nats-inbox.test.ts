import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { encodeToOwner, type LocalOwner, type ToOwner } from "../../shared/bus/envelope.ts";
import { encodePresenceToOwner, type PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { Epoch, GatewayId, RoomKey } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomServerMetrics } from "../metrics.ts";
import { natsInbox } from "./nats-inbox.ts";

const room = "acme.notes" as RoomKey;
const subjects = subjectsOf("test");

test("[NAT21] an owner receives edits and presence on one subscription, separates them, and counts messages that are neither", async () => {
  const subscribed: string[] = [];
  let deliver: (error: null, message: { sid: number; data: Uint8Array }) => void = () => {};
  const nats = {
    subscribe: (subject: string, { callback }: { callback: typeof deliver }) => {
      subscribed.push(subject);
      deliver = callback;
      return { getID: () => 7 };
    },
    flush: () => Promise.resolve(),
  };
  const metrics = roomServerMetrics(new Registry());
  const received: (ToOwner | PresenceToOwner)[] = [];
  await natsInbox(nats as unknown as NatsConnection, subjects, { log: SILENT_LOG, metrics }).subscribe(room, {
    openEpoch: undefined,
    receiveMessage: (message) => void received.push(message),
    receivePresence: (message) => void received.push(message),
  });

  const gateway = "gw" as GatewayId;
  const sent = [{ kind: "sync", gateway }, { kind: "check-ownership" }, { kind: "edits", gateway, edits: [] }] as const;
  deliver(null, { sid: 7, data: encodePresenceToOwner(sent[0]) });
  deliver(null, { sid: 7, data: encodeToOwner(sent[1]) });
  deliver(null, { sid: 7, data: encodeToOwner(sent[2]) });
  for (const bytes of [[], [0xff], [encodePresenceToOwner(sent[0])[0]!], [encodeToOwner(sent[2])[0]!]])
    deliver(null, { sid: 7, data: Uint8Array.from(bytes) });
  expect(subscribed).toEqual([subjects.toOwner(room)]);
  expect(received).toEqual(sent);
  expect((await metrics.messagesUnread.get()).values).toMatchObject([{ value: 4 }]);
});

test("[NAT26] after the end of its subscription an owner receives nothing, and a lost connection is not drained", async () => {
  let [isClosed, drains] = [false, 0];
  let deliver: (error: null, message: { sid: number; data: Uint8Array }) => void = () => {};
  const nats = {
    subscribe: (_: string, { callback }: { callback: typeof deliver }) => {
      deliver = callback;
      const drain = async () => void (drains += 1);
      return { getID: () => 7, isClosed: () => isClosed, isDraining: () => false, drain };
    },
    flush: () => Promise.resolve(),
  };
  const metrics = roomServerMetrics(new Registry());
  const inbox = natsInbox(nats as unknown as NatsConnection, subjects, { log: SILENT_LOG, metrics });
  let received = 0;
  const owner = { openEpoch: undefined, receiveMessage: () => void (received += 1), receivePresence: () => {} };
  const message = { sid: 7, data: encodeToOwner({ kind: "check-ownership" }) };
  for (const [lost, drained] of [
    [false, 1],
    [true, 1],
  ] as const) {
    const subscription = await inbox.subscribe(room, owner);
    deliver(null, message);
    isClosed = lost;
    expect(subscription.isOpen()).toBe(!lost);
    await subscription.close();
    deliver(null, message);
    expect(drains).toBe(drained);
  }
  expect(received).toBe(2);
});

test("[NAT24] a gateway of the same process reaches the newest owner of the room until its subscription ends", async () => {
  let lastId = 0;
  const nats = {
    subscribe: () => {
      const id = ++lastId;
      return { getID: () => id, isClosed: () => false, isDraining: () => false, drain: () => Promise.resolve() };
    },
    flush: () => Promise.resolve(),
  };
  const metrics = roomServerMetrics(new Registry());
  const localOwners = new Map<RoomKey, LocalOwner>();
  const inbox = natsInbox(nats as unknown as NatsConnection, subjects, { log: SILENT_LOG, metrics, localOwners });
  const ownerOf = (epoch: number) => ({ openEpoch: epoch as Epoch, receiveMessage: () => {}, receivePresence: () => {} });
  const [former, next] = [ownerOf(6), ownerOf(7)];

  const subscription = await inbox.subscribe(room, former);
  expect(localOwners.get(room)).toBe(former);
  const nextSubscription = await inbox.subscribe(room, next);
  await subscription.close(); // The end of the former subscription leaves the next one in place.
  expect(localOwners.get(room)).toBe(next);
  await nextSubscription.close();
  expect(localOwners.size).toBe(0);
});
