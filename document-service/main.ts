/** Starts one document service. Any number may run: one service reads each partition of the log, the others are on standby. */

import { createHash, randomUUID } from "node:crypto";

import { jetstream } from "@nats-io/jetstream";
import type { Registry } from "prom-client";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { sendHeartbeats } from "../shared/io/heartbeats.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { closeNats, connectAs, logForbidden } from "../shared/io/nats.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { publishVitals } from "../shared/io/vitals.ts";
import { startTraces } from "../shared/io/traces/start-traces.ts";
import { tracedLog } from "../shared/io/traces/traced-log.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import { limitedLog } from "../shared/process/limited-log.ts";
import type { Log } from "../shared/process/log.ts";
import { serviceAddress } from "../shared/settings/service-address.ts";
import type { SharedConfig } from "../shared/settings/common-settings.ts";
import { type DocumentServiceConfig, refuseUnfit, refuseUnwritable, documentsAddress } from "./config.ts";
import { DocumentHost } from "./document-host.ts";
import { applicationContent } from "./io/application-content.ts";
import { firstContentRoutes } from "./io/first-content-routes.ts";
import { deleteRoutes, writeRoutes } from "./io/write-routes.ts";
import { historyRoutes } from "./io/history-routes.ts";
import { serveHttp } from "./io/http.ts";
import { listRoute } from "./io/list-routes.ts";
import { jetstreamDeletions, jetstreamLog, jetstreamRoomNames } from "./io/jetstream-log.ts";
import { kvCheckpoints, kvHistories } from "./io/kv-checkpoints.ts";
import { ensureOperationsStream, natsOperations } from "../shared/io/nats-operations.ts";
import { internalTls } from "../shared/io/internal-tls.ts";
import { kvLeases } from "../shared/io/kv-leases.ts";
import { documentThreads } from "./io/document-threads.ts";
import { natsStorage, natsStorageQuestions } from "./io/nats-storage.ts";
import { openStores } from "./io/object-stores.ts";
import { readRoutes } from "./io/read-routes.ts";
import { watchStore } from "./io/watch-store.ts";
import { startWebhooks } from "./io/webhooks.ts";
import { documentServiceMetrics } from "./metrics.ts";

/** Time without an answer from nats-server after which a request is sent again. */
const ANSWER_MS_MAX = 2_000;

export async function startDocumentService(
  config: SharedConfig & DocumentServiceConfig,
  { log: given, registry }: { log: Log; registry: Registry },
): Promise<Running & { url: string }> {
  refuseUnfit(config);
  const log = limitedLog(given, systemClock);
  const service = randomUUID();
  const subjects = subjectsOf(config.environment);
  const metrics = documentServiceMetrics(registry);

  const nats = await connectAs("document-service", "document-service", config);
  logForbidden(nats, log);
  refuseUnwritable(config, nats.info?.max_payload);
  const { logPartitions: partitions, logReplicas: replicas, logBytesMax: bytesMax } = config;
  await ensureLogStreams(nats, subjects, { partitions, replicas, bytesMax });
  const streams = jetstream(nats, { timeout: ANSWER_MS_MAX });
  const threads = documentThreads(config, {
    clock: systemClock,
    log,
    quarantinedRooms: metrics.quarantinedRooms,
    waits: metrics.threadWaits,
  });
  const traces = await startTraces(config, { role: "document-service", instance: service }, { log, registry });
  const logOptions = { partitions, readMs: config.documentsReadMs, answerMsMax: ANSWER_MS_MAX };
  const editLog = await jetstreamLog(nats, subjects, logOptions);
  const names = await jetstreamRoomNames(nats, subjects, logOptions);
  const ports = {
    log: tracedLog(editLog, traces?.edits, "document-service"),
    checkpoints: await kvCheckpoints(streams, subjects.checkpointsBucket, config.logReplicas),
    leases: await kvLeases(streams, subjects.documentsBucket, config.logReplicas),
    boards: await kvLeases(streams, subjects.boardsBucket, config.logReplicas),
    ...(await openStores(streams, subjects, config, ({ running, waiting }) => {
      metrics.postgresStatements.set({ state: "running" }, running);
      metrics.postgresStatements.set({ state: "waiting" }, waiting);
    })),
    histories: await kvHistories(streams, subjects.historyBucket, config.logReplicas),
    storage: natsStorage(nats, subjects),
    storageQuestions: natsStorageQuestions(nats, subjects, log),
    merging: threads,
    reverting: threads,
    deletions: jetstreamDeletions(nats, streams, subjects, { partitions: config.logPartitions }, systemClock),
    digest: (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex"),
  };
  const deps = { clock: systemClock, log, metrics };
  const store = watchStore(config, deps);
  await ensureOperationsStream(nats, subjects, config);
  const operations = natsOperations(nats, subjects, service, { ...deps, count: () => {} }); // Each kind has a counter of its own.
  const webhooks = await startWebhooks(nats, streams, subjects, config, { ...deps, operations });
  const host = new DocumentHost(ports, { ...config, service }, { ...deps, notifications: webhooks.notifications, operations });
  const tls = internalTls(config, documentsAddress(config));
  const http = await serveHttp(
    {
      list: listRoute({ ...ports, names }, log),
      rooms: [
        ...readRoutes(host, threads, config, systemClock),
        ...writeRoutes(threads),
        ...historyRoutes(host, log),
        ...deleteRoutes(host),
        ...firstContentRoutes(host, threads, applicationContent(config, systemClock), deps),
      ],
    },
    { ...config, tls },
    { log, metrics, registry },
  );
  const url = serviceAddress(documentsAddress(config), http.port, tls !== undefined);
  const heartbeats = sendHeartbeats(
    nats,
    subjects.documents,
    { service, url, everyMs: config.documentsHeartbeatMs, isServing: () => host.isServing },
    systemClock,
  );

  const stopVitals = publishVitals(nats, subjects, { role: "document-service", instance: service }, registry, systemClock);
  const stop = async (): Promise<void> => {
    stopVitals();
    store.stop();
    heartbeats.stop();
    await http.stop();
    await host.stop();
    await webhooks.stop();
    await threads.stop();
    await closeNats(nats);
    await traces?.stop();
  };
  return { url, stop: stopOnce(stop), obstacle: store.obstacle };
}
