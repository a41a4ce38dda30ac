import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { Epoch, GatewayId, RoomKey } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { roomServerMetrics } from "../metrics.ts";
import { natsPresence } from "./nats-presence.ts";

const room = "acme.notes" as RoomKey;
const [epoch, status] = [1 as Epoch, { mode: "flat", participants: 0, presencePerSecond: 30, shed: 0 } as const];

test("[NAT6] deltas and snapshots of presence too large for NATS are skipped and counted, and end nothing", async () => {
  const published: string[] = [];
  const nats = { info: { max_payload: 1_000 }, publish: (subject: string) => void published.push(subject), status: () => [] };
  const metrics = roomServerMetrics(new Registry());
  const subjects = subjectsOf("test");
  const bus = natsPresence(nats as unknown as NatsConnection, subjects, { metrics, sent: () => {} });
  for (const bytes of [900, 1_000]) {
    const delta = new Uint8Array(bytes);
    bus.broadcast(room, { kind: "delta", epoch, number: 1, delta });
    bus.answer("gw" as GatewayId, room, { kind: "snapshot", epoch, number: 1, status, delta });
  }
  expect(published).toEqual([subjects.presenceOut(room), subjects.presenceToGateway("gw" as GatewayId, room)]);
  expect((await metrics.presenceUnsent.get()).values).toMatchObject([{ value: 2 }]);
});
