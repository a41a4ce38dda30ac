import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { subjectsOf } from "../../../shared/bus/subjects.ts";
import type { GatewayId, RoomKey } from "../../../shared/ids.ts";
import type { NatsConnection } from "../../../shared/io/nats.ts";
import { gatewayMetrics } from "../../metrics.ts";
import { natsPresenceOwners } from "./nats-rooms.ts";

const room = "acme.notes" as RoomKey;

test("[NAT5] presence above the max_payload of NATS is dropped and counted, and the process continues", async () => {
  const publishedBytes: number[] = [];
  const connection = {
    info: { max_payload: 1_000 },
    publish: (_: string, data: Uint8Array) => void publishedBytes.push(data.byteLength),
    subscribe: () => ({ getID: () => 1, unsubscribe: () => {} }),
    flush: () => Promise.resolve(),
  };
  const metrics = gatewayMetrics(new Registry());
  const { rooms } = natsPresenceOwners(connection as unknown as NatsConnection, subjectsOf("test"), "gw" as GatewayId, {
    endOfTurn: setImmediate,
    metrics,
  });
  await rooms.follow(room);
  for (const bytes of [1_000, 1_001, 5]) rooms.sendToOwner(room, new Uint8Array(bytes));
  expect(publishedBytes).toEqual([1_000, 5]);
  expect((await metrics.presenceUnsent.get()).values).toMatchObject([{ value: 1 }]);
});
