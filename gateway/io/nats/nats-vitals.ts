/** Keeps the vitals that processes publish, and publishes those of this gateway. */

import { JetStreamApiError, JetStreamError, jetstreamManager } from "@nats-io/jetstream";
import type { Registry } from "prom-client";

import type { Operations } from "../../../shared/bus/operations-events.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import { VITALS_EVERY_MS } from "../../../shared/bus/vitals.ts";
import { encodeJson } from "../../../shared/bus/json-messages.ts";
import type { GatewayId } from "../../../shared/ids.ts";
import { isNoAnswer } from "../../../shared/io/nats-json.ts";
import { type NatsConnection, publish } from "../../../shared/io/nats.ts";
import { readVitals, watchVitals } from "../../../shared/io/vitals.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import { VitalsHistory } from "../../operations/vitals-history.ts";

/** One hour: 29 KB for a process, 6 KB for a room. */
const KEPT = { slotsMax: 3_600_000 / VITALS_EVERY_MS, instancesMax: 256, roomsMax: 500 };

/** A gateway without NATS still keeps its own vitals. */
export function natsVitals(nats: NatsConnection, subjects: Subjects, gateway: GatewayId, clock: Clock, operations: Operations) {
  const history = new VitalsHistory(KEPT);
  const own = { role: "gateway", instance: gateway } as const;
  watchVitals(nats, subjects, own, { clock, operations }, (vitals) => {
    if (vitals.instance !== gateway) history.receiveVitals(vitals, clock.wallNow());
  });
  return {
    history,
    /** Names of the running gateways. */
    gateways: () => history.running(clock.wallNow()).flatMap(({ role, instance }) => (role === "gateway" ? [instance] : [])),
    /** Returns a function that stops it. */
    start: (registry: Registry, metrics: Pick<GatewayMetrics, "jetstreamBytes">): (() => void) =>
      readVitals(own, registry, clock, (vitals) => {
        history.receiveVitals(vitals, clock.wallNow());
        publish(nats, subjects.vitals, encodeJson(vitals));
        if (vitals.ends !== true) void readStoredBytes(nats, metrics);
      }),
  };
}

async function readStoredBytes(nats: NatsConnection, { jetstreamBytes }: Pick<GatewayMetrics, "jetstreamBytes">): Promise<void> {
  try {
    const manager = await jetstreamManager(nats, { checkAPI: false, timeout: VITALS_EVERY_MS });
    jetstreamBytes.set((await manager.getAccountInfo()).storage);
  } catch (error) {
    if (!isNoAnswer(error) && !(error instanceof JetStreamError) && !(error instanceof JetStreamApiError)) throw error;
  }
}
