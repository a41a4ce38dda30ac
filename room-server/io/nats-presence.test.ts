import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { decodePresenceDown, encodePresenceUp } from "../../shared/bus/presence-batches.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { GatewayId, RoomKey, ServerId } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { roomServerMetrics } from "../metrics.ts";
import { natsPresence } from "./nats-presence.ts";

const [gateway, server] = ["gw" as GatewayId, "rs-1" as ServerId];
const timing = { tickMs: 50, slots: 1, sendAtMs: 3 };

test("[NAT6] presence too large for NATS is skipped and counted, and the other rooms of the batch are sent", async () => {
  const published: { subject: string; data: Uint8Array }[] = [];
  const nats = {
    info: { max_payload: 1_000 },
    publish: (subject: string, data: Uint8Array) => void published.push({ subject, data }),
    status: () => [],
  };
  const metrics = roomServerMetrics(new Registry());
  const subjects = subjectsOf("test");
  const bus = natsPresence(nats as unknown as NatsConnection, subjects, server, { metrics });
  const entries = [880, 1_000, 3].map((bytes, index) => ({ room: `acme.room-${index}` as RoomKey, message: new Uint8Array(bytes) }));
  bus.sendBatch(gateway, { timing, entries });
  expect(new Set(published.map(({ subject }) => subject))).toEqual(new Set([subjects.presenceToGateway(gateway, server)]));
  expect(published.flatMap(({ data }) => decodePresenceDown(data)!.entries)).toEqual([entries[0], entries[2]]);
  expect((await metrics.presenceUnsent.get()).values).toMatchObject([{ value: 1 }]);
});

test("[NAT27] batches of gateways are received, other messages counted, and nothing is sent while the connection is lost", async () => {
  let published = 0;
  let deliver: (error: Error | null, message: { data: Uint8Array }) => void = () => {};
  let sendStatus: (type: string) => void = () => {};
  const nats = {
    info: { max_payload: 1_000 },
    publish: () => void (published += 1),
    subscribe: (_: string, { callback }: { callback: typeof deliver }) => void (deliver = callback),
    flush: () => Promise.resolve(),
    async *status() {
      for (;;) yield { type: await new Promise<string>((resolve) => (sendStatus = resolve)) };
    },
  };
  const metrics = roomServerMetrics(new Registry());
  const bus = natsPresence(nats as unknown as NatsConnection, subjectsOf("test"), server, { metrics });
  const received: unknown[] = [];
  bus.onBatch((batch) => void received.push(batch));
  const up = { gateway, sentAtMs: 4, entries: [] };
  deliver(null, { data: encodePresenceUp(up) });
  deliver(null, { data: new Uint8Array(3) });
  expect([received, (await metrics.messagesUnread.get()).values[0]?.value]).toEqual([[{ kind: "up", ...up }], 1]);

  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const send = () => bus.sendBatch(gateway, { timing, entries: [{ room: "acme.notes" as RoomKey, message: new Uint8Array(1) }] });
  await settled();
  sendStatus("disconnect");
  await settled();
  send();
  expect([bus.connectionStatus(), published]).toEqual([{ isUp: false, losses: 1 }, 0]);
  sendStatus("reconnect");
  await settled();
  send();
  expect([bus.connectionStatus(), published]).toEqual([{ isUp: true, losses: 1 }, 1]);
});
