import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { decodePresenceDown } from "../../shared/bus/presence-batches.ts";
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
  const entries = [900, 1_000, 3].map((bytes, index) => ({ room: `acme.room-${index}` as RoomKey, message: new Uint8Array(bytes) }));
  bus.sendBatch(gateway, { timing, entries });
  expect(new Set(published.map(({ subject }) => subject))).toEqual(new Set([subjects.presenceToGateway(gateway, server)]));
  expect(published.flatMap(({ data }) => decodePresenceDown(data)!.entries)).toEqual([entries[0], entries[2]]);
  expect((await metrics.presenceUnsent.get()).values).toMatchObject([{ value: 1 }]);
});
