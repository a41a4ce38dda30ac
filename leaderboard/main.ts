/**
 * Starts one leaderboard. Any number may run: one of them counts each partition of the log, the others are on standby.
 * All of them answer readers.
 */

import { jetstream } from "@nats-io/jetstream";
import { randomUUID } from "node:crypto";
import type { Registry } from "prom-client";

import { BoardWatch, DisplayNames } from "../shared/bus/board-messages.ts";
import { encodeJson } from "../shared/bus/json-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { sendHeartbeats } from "../shared/io/heartbeats.ts";
import { internalTls } from "../shared/io/internal-tls.ts";
import { kvLeases } from "../shared/io/kv-leases.ts";
import { awaitLogStreams } from "../shared/io/log-stream.ts";
import { subscribeJson } from "../shared/io/nats-json.ts";
import { closeNats, connectAs, logForbidden, publish } from "../shared/io/nats.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { publishVitals } from "../shared/io/vitals.ts";
import { startTraces } from "../shared/io/traces/start-traces.ts";
import { tracedLog } from "../shared/io/traces/traced-log.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import type { SharedConfig } from "../shared/settings/common-settings.ts";
import { serviceAddress } from "../shared/settings/service-address.ts";
import { type LeaderboardConfig, refuseUnarchivable, refuseUnfit, boardsAddress } from "./config.ts";
import { serveHttp } from "./io/http.ts";
import { activityRemoval, SHORT_READ_WAITS, jetstreamActivities, jetstreamLog, ReadingInterval } from "./io/jetstream-activities.ts";
import { kvArchive } from "./io/kv-archive.ts";
import { kvCheckpoints } from "./io/kv-checkpoints.ts";
import { redisPorts } from "./io/redis-ports.ts";
import { LeaderboardHost, type LeaderboardPorts } from "./leaderboard-host.ts";
import { leaderboardMetrics } from "./metrics.ts";

export async function startLeaderboard(
  config: SharedConfig & LeaderboardConfig,
  { log, registry }: { log: Log; registry: Registry },
): Promise<Running & { url: string }> {
  refuseUnfit(config);
  const subjects = subjectsOf(config.environment);
  const { logPartitions: partitions, logReplicas: replicas } = config;
  const [service, metrics] = [randomUUID(), leaderboardMetrics(registry)];

  const nats = await connectAs("leaderboard", "leaderboard", config);
  logForbidden(nats, log);
  refuseUnarchivable(config, nats.info?.max_payload);
  await awaitLogStreams(nats, subjects, partitions);
  const redis = redisPorts(config, { clock: systemClock, log, metrics });
  const intervals = () =>
    Array.from(
      { length: partitions },
      () =>
        new ReadingInterval(systemClock, {
          restMs: () => (host.isWatched ? config.boardWatchedReadMs : config.boardReadMs),
          ...SHORT_READ_WAITS,
        }),
    );
  const traces = await startTraces(config, { role: "leaderboard", instance: service }, { log, registry });
  let named = 0;
  const ports: LeaderboardPorts = {
    ...redis.ports,
    log: tracedLog(await jetstreamLog(nats, subjects, intervals()), traces?.edits, "leaderboard"),
    activities: await jetstreamActivities(nats, subjects, intervals(), {
      partitions,
      replicas,
      bytesMax: config.boardActivityBytesMax,
      dedupeMs: config.boardActivityDedupeMs,
    }),
    activityRemoval: await activityRemoval(nats, subjects, partitions),
    leases: await kvLeases(jetstream(nats), subjects.boardsBucket, replicas),
    checkpoints: await kvCheckpoints(nats, subjects.boardCheckpointsBucket, {
      replicas,
      partitions,
      newName: () => `${service}-${++named}`,
    }),
    ...(await kvArchive(nats, subjects, { replicas, daysMax: config.boardArchiveDaysMax })),
    shown: { publish: (update) => void publish(nats, subjects.boards(update.room), encodeJson(update)) },
  };
  const host: LeaderboardHost = new LeaderboardHost(
    ports,
    { ...config, service },
    { clock: systemClock, log, metrics, isRedisAway: redis.isAway },
  );
  subscribeJson(nats, subjects.watchBoard, BoardWatch, (watch) => host.receiveWatch(watch));
  subscribeJson(nats, subjects.boardNames, DisplayNames, (names) => names.forEach((name) => host.receiveName(name)));
  const tls = internalTls(config, boardsAddress(config));
  const http = await serveHttp(host, { ...config, tls }, { log, metrics, registry });
  const url = serviceAddress(boardsAddress(config), http.port, tls !== undefined);
  const heartbeats = sendHeartbeats(
    nats,
    subjects.leaderboards,
    { service, url, everyMs: config.boardsHeartbeatMs, isServing: () => true, reachesRedis: redis.reaches },
    systemClock,
  );
  const stopVitals = publishVitals(nats, subjects, { role: "leaderboard", instance: service }, registry, systemClock);
  const stop = async (): Promise<void> => {
    stopVitals();
    heartbeats.stop();
    await http.stop();
    await host.stop();
    redis.stop();
    await closeNats(nats);
    await traces?.stop();
  };
  return { url, stop: stopOnce(stop), obstacle: redis.obstacle };
}
