/** The room server's side of NATS: a port for each thing that is said, asked or kept there. */

import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { ensureOperationsStream, natsOperations } from "../../shared/io/nats-operations.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { SharedConfig } from "../../shared/settings.ts";
import type { RoomServerConfig } from "../config.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import { jetstreamLog } from "./jetstream-log.ts";
import { kvCheckpoints } from "./kv-checkpoints.ts";
import { kvRooms } from "./kv-rooms.ts";
import { natsActivity } from "./nats-activity.ts";
import { natsFanOut } from "./nats-fan-out.ts";
import { natsGateways } from "./nats-gateways.ts";
import { natsInbox } from "./nats-inbox.ts";
import { natsOtherServers } from "./nats-other-servers.ts";
import { natsPresence } from "./nats-presence.ts";

export type NatsPortsDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly presenceSent: (room: RoomKey, bytes: number) => void;
};

/** Makes the streams and buckets that are missing. */
export async function natsPorts(
  nats: NatsConnection,
  subjects: Subjects,
  server: ServerId,
  config: SharedConfig & RoomServerConfig,
  deps: NatsPortsDeps,
) {
  const { clock, log, metrics } = deps;
  const { logPartitions: partitions, logReplicas: replicas, appendAnswerMsMax } = config;
  await ensureLogStreams(nats, subjects, { partitions, replicas });
  await ensureOperationsStream(nats, subjects, config);
  return {
    log: await jetstreamLog(nats, subjects, { server, partitions, appendAnswerMsMax }, { clock, log, metrics }),
    inbox: natsInbox(nats, subjects, { log, metrics }),
    gateways: natsGateways(nats, subjects),
    presenceBus: natsPresence(nats, subjects, { metrics, sent: deps.presenceSent }),
    checkpoints: await kvCheckpoints(nats, subjects.checkpointsBucket, replicas),
    entries: await kvRooms(nats, subjects.roomsBucket, replicas, server),
    activity: natsActivity(nats, subjects, config.webhookUrls, clock),
    fanOut: natsFanOut(nats, subjects),
    others: natsOtherServers(nats, subjects),
    operations: natsOperations(nats, subjects, server, { clock, log, count: (kind) => metrics.events.inc({ kind }) }),
  };
}
