/** Keeps the vitals that processes publish, and publishes those of this gateway. */

import { JetStreamApiError, JetStreamError, jetstreamManager } from "@nats-io/jetstream";
import type { Registry } from "prom-client";

import type { Operations } from "../../../shared/bus/operations-events.ts";
import type { Subjects } from "../../../shared/bus/subjects.ts";
import { Vitals, VITALS_EVERY_MS } from "../../../shared/bus/vitals.ts";
import { encodeJson } from "../../../shared/bus/json-messages.ts";
import type { GatewayId } from "../../../shared/ids.ts";
import { isNoAnswer, subscribeJson } from "../../../shared/io/nats-json.ts";
import { type NatsConnection, publish } from "../../../shared/io/nats.ts";
import { readVitals } from "../../../shared/io/vitals.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import { LostProcesses } from "../../operations/processes-lost.ts";
import { VitalsHistory } from "../../operations/vitals-history.ts";

/** One hour: 29 KB for a process, 6 KB for a room. */
const KEPT = { slotsMax: 3_600_000 / VITALS_EVERY_MS, instancesMax: 256, roomsMax: 500 };

/** A gateway without NATS still keeps its own vitals. */
export function natsVitals(nats: NatsConnection, subjects: Subjects, gateway: GatewayId, clock: Clock, operations: Operations) {
  const history = new VitalsHistory(KEPT);
  const lost = new LostProcesses(gateway);
  subscribeJson(nats, subjects.vitals, Vitals, (vitals) => {
    for (const report of lost.receiveVitals(vitals, clock.now())) operations.report({ kind: "process_lost", ...report });
    if (vitals.instance !== gateway) history.receiveVitals(vitals, clock.wallNow());
  });
  return {
    history,
    /** Returns a function that stops it. */
    start: (registry: Registry, metrics: Pick<GatewayMetrics, "jetstreamBytes">): (() => void) =>
      readVitals({ role: "gateway", instance: gateway }, registry, clock, (own) => {
        history.receiveVitals(own, clock.wallNow());
        publish(nats, subjects.vitals, encodeJson(own));
        if (own.ends !== true) void readStoredBytes(nats, metrics);
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
