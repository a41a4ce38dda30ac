import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { decodePresenceUp } from "../../../shared/bus/presence-batches.ts";
import { subjectsOf } from "../../../shared/bus/subjects.ts";
import type { GatewayId, RoomKey, ServerId } from "../../../shared/ids.ts";
import type { NatsConnection } from "../../../shared/io/nats.ts";
import { gatewayMetrics } from "../../metrics.ts";
import { natsPresenceServers } from "./nats-presence.ts";

const [gateway, server] = ["gw" as GatewayId, "rs-1" as ServerId];
const rooms = Array.from({ length: 50 }, (_, index) => `acme.room-${index}` as RoomKey);
const subjects = subjectsOf("test");

function connect(maxPayload: number) {
  const published: { subject: string; data: Uint8Array }[] = [];
  const connection = {
    info: { max_payload: maxPayload },
    publish: (subject: string, data: Uint8Array) => void published.push({ subject, data }),
  };
  const metrics = gatewayMetrics(new Registry());
  const { servers } = natsPresenceServers(connection as unknown as NatsConnection, subjects, gateway, { metrics });
  return { published, metrics, servers };
}

test("[NAT5] presence above the max_payload of NATS is dropped and counted, and the other rooms of the batch are sent", async () => {
  const { published, metrics, servers } = connect(1_000);
  const entries = [800, 1_001, 5].map((bytes, index) => ({ room: rooms[index]!, message: new Uint8Array(bytes) }));
  servers.sendBatch(server, { sentAtMs: 7, entries });
  const sent = published.flatMap(({ data }) => decodePresenceUp(data)!.entries.map(({ message }) => message.byteLength));
  expect(sent).toEqual([800, 5]);
  expect(published.every(({ data }) => data.byteLength <= 1_000)).toBe(true);
  expect((await metrics.presenceUnsent.get()).values).toMatchObject([{ value: 1 }]);
});

test("[NAT22] presence of 50 rooms with one room server is one message", () => {
  const { published, servers } = connect(1_048_576);
  const entries = rooms.map((room) => ({ room, message: new Uint8Array(200) }));
  servers.sendBatch(server, { sentAtMs: 7, entries });
  expect(published.map(({ subject, data }) => ({ subject, ...decodePresenceUp(data) }))).toEqual([
    { subject: subjects.presenceToServer(server), kind: "up", gateway, sentAtMs: 7, entries },
  ]);
});
