/** Starts one placement process. */

import { randomBytes } from "node:crypto";

import { jetstream } from "@nats-io/jetstream";
import type { Registry } from "prom-client";

import { PlannedRoom, RoomEntry, RoomPin } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { kvLeases } from "../shared/io/kv-leases.ts";
import { closeNats, connectAs, logForbidden } from "../shared/io/nats.ts";
import { ensureOperationsStream, natsOperations } from "../shared/io/nats-operations.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { publishVitals, watchVitals } from "../shared/io/vitals.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import { limitedLog } from "../shared/process/limited-log.ts";
import type { Log } from "../shared/process/log.ts";
import type { SharedConfig } from "../shared/settings/common-settings.ts";
import { decideOptions, type PlacementConfig } from "./config.ts";
import { kvPlans, kvRooms, watchedBucket } from "./io/kv-entries.ts";
import { natsQuestions, natsRoomServers } from "./io/nats-questions.ts";
import { placementMetrics } from "./metrics.ts";
import { hostPlacement } from "./placement-host.ts";

export async function startPlacement(
  config: SharedConfig & PlacementConfig,
  { log: given, registry }: { log: Log; registry: Registry },
): Promise<Running> {
  const log = limitedLog(given, clock);
  const subjects = subjectsOf(config.environment);
  const holder = `placement-${randomBytes(8).toString("hex")}`;
  const metrics = placementMetrics(registry);
  const nats = await connectAs("placement", holder, config);
  logForbidden(nats, log);
  await ensureOperationsStream(nats, subjects, config);
  const replicas = config.logReplicas;
  const ports = {
    rooms: kvRooms(await watchedBucket(nats, subjects.roomsBucket, replicas, RoomEntry, log)),
    plans: kvPlans(await watchedBucket(nats, subjects.planBucket, replicas, PlannedRoom, log)),
    pins: await watchedBucket(nats, subjects.pinsBucket, replicas, RoomPin, log),
    leases: await kvLeases(jetstream(nats), subjects.placementBucket, replicas),
    questions: natsQuestions(nats, subjects, log),
    servers: natsRoomServers(nats, subjects),
    operations: natsOperations(nats, subjects, holder, { clock, log, count: (kind) => metrics.events.inc({ kind }) }),
  };
  const placement = hostPlacement(ports, { ...config, ...decideOptions(config), holder }, { clock, log, metrics });
  const own = { role: "placement", instance: holder } as const;
  watchVitals(nats, subjects, own, { clock, operations: ports.operations });
  await nats.flush();
  const stopVitals = publishVitals(nats, subjects, own, registry, clock);
  const stop = async (): Promise<void> => {
    stopVitals();
    placement.stop();
    await closeNats(nats);
  };
  return { stop: stopOnce(stop) };
}
