/** The room server's NATS adapters: one for each port. */

import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { ensureOperationsStream, natsOperations } from "../../shared/io/nats-operations.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { SharedConfig } from "../../shared/settings/common-settings.ts";
import type { RoomServerConfig } from "../config.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import { jetstreamLog } from "./jetstream-log.ts";
import { kvRooms } from "./kv-rooms.ts";
import type { LogStorage } from "./log-storage.ts";
import { natsFanOut } from "./nats-fan-out.ts";
import { natsInbox } from "./nats-inbox.ts";
import { natsPresence } from "./nats-presence.ts";
import { ClaimReply, HANDOVER_STEPS_MS_MAX, LocateReply, ServerCommandReply } from "../../shared/bus/placement-messages.ts";
import { requestReply } from "../../shared/io/nats-json.ts";
import type { OtherServers, Gateways, RoomActivityReports, CheckpointReader } from "../ports.ts";
import { encodeOwnerReply, encodeFromOwner, type LocalOwners } from "../../shared/bus/envelope.ts";
import { publish } from "../../shared/io/nats.ts";
import { randomUUID } from "node:crypto";
import { headers } from "nats";
import { encodeJson, decodeJson } from "../../shared/bus/json-messages.ts";
import type { WebhookEvent } from "../../shared/bus/webhook-events.ts";
import { roomOf, tenantOf } from "../../shared/ids.ts";
import { wantsEventsOf, type WebhookEndpoint } from "../../shared/settings/webhook-endpoints.ts";
import { jetstream } from "@nats-io/jetstream";
import { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import { kvBucket } from "../../shared/io/jetstream-stores.ts";

export type NatsPortsDeps = {
  readonly localOwners?: LocalOwners | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly storage: LogStorage;
};

/** `presence`: the separate connection for presence, which carries no edits. Creates missing streams and buckets. */
export async function natsPorts(
  { nats, presence }: { readonly nats: NatsConnection; readonly presence: NatsConnection },
  subjects: Subjects,
  server: ServerId,
  config: SharedConfig & RoomServerConfig,
  deps: NatsPortsDeps,
) {
  const { clock, log, metrics } = deps;
  const { logPartitions: partitions, logReplicas: replicas, logBytesMax: bytesMax, appendAnswerMsMax } = config;
  await ensureLogStreams(nats, subjects, { partitions, replicas, bytesMax });
  await ensureOperationsStream(nats, subjects, config);
  const checkpoints = await kvCheckpoints(nats, subjects.checkpointsBucket, replicas);
  const logDeps = { checkpoints, clock, log, metrics, storage: deps.storage };
  return {
    log: await jetstreamLog(nats, subjects, { server, partitions, appendAnswerMsMax }, logDeps),
    inbox: natsInbox(nats, subjects, deps),
    gateways: natsGateways(nats, subjects),
    presenceBus: natsPresence(presence, subjects, server, { metrics }),
    checkpoints,
    entries: await kvRooms(nats, subjects.roomsBucket, replicas, server),
    activity: natsActivity(nats, subjects, config.webhookUrls, clock),
    fanOut: natsFanOut(nats, subjects),
    others: natsOtherServers(nats, subjects),
    operations: natsOperations(nats, subjects, server, { clock, log, count: (kind) => metrics.events.inc({ kind }) }),
  };
}

const LOCATE_MS_MAX = 500;

/** Asks other room servers, and placement, by request and reply. */
export function natsOtherServers(nats: NatsConnection, subjects: Subjects): OtherServers {
  const steps = HANDOVER_STEPS_MS_MAX;
  return {
    follow: async (server, room) =>
      (await requestReply(nats, subjects.order(server), { kind: "follow", room, generation: 0 }, ServerCommandReply, steps.follow))
        ?.kind === "done",
    expect: async (server, room) =>
      (await requestReply(nats, subjects.order(server), { kind: "expect", room, generation: 0 }, ServerCommandReply, steps.expect))
        ?.kind === "done",
    claim: (server, request) => requestReply(nats, subjects.claim(server), request, ClaimReply, steps.claim),
    locate: async (room, suspects) => {
      const reply = await requestReply(nats, subjects.locate, { room, suspects }, LocateReply, LOCATE_MS_MAX);
      return reply?.kind === "server" ? reply.server : undefined;
    },
  };
}

/** Announcements and replies of an owner to gateways. JetStream republishes the records in addition to them. */
export function natsGateways(nats: NatsConnection, subjects: Subjects): Gateways {
  return {
    answer: (gateway, room, answer) => publish(nats, subjects.toGateway(gateway, room), encodeOwnerReply(answer)),
    broadcast: (room, message) => publish(nats, subjects.editsOut(room), encodeFromOwner(message)),
  };
}

/**
 * Queues a webhook event when a room becomes occupied or vacant, if an endpoint subscribes to it. Events are lost while
 * NATS is unreachable.
 */
function natsActivity(nats: NatsConnection, subjects: Subjects, endpoints: readonly WebhookEndpoint[], clock: Clock): RoomActivityReports {
  return {
    report: (room, type) => {
      const tenant = tenantOf(room);
      if (!wantsEventsOf(tenant, endpoints)) return;
      const event: WebhookEvent = { type, tenant, room: roomOf(room), at: clock.wallNow() };
      const named = headers();
      named.set("Nats-Msg-Id", randomUUID());
      publish(nats, subjects.webhook(tenant), encodeJson(event), { headers: named });
    },
  };
}

/**
 * Reads the checkpoints that the document service writes. Creates `bucket`, with `replicas` replicas, if it is missing.
 */
export async function kvCheckpoints(nats: NatsConnection, bucket: string, replicas: number): Promise<CheckpointReader> {
  // Read from the leader, because an old checkpoint would not match the log, which is trimmed up to the newest
  // checkpoint.
  const kv = await kvBucket(jetstream(nats), bucket, { replicas });
  return {
    newest: async (room) => {
      const entry = await kv.get(room);
      if (entry === null || entry.operation !== "PUT") return undefined;
      const checkpoint = decodeJson(CheckpointEntry, entry.value);
      if (checkpoint === undefined)
        throw new Error(
          `the checkpoint of room ${room} does not decode: a newer version may have written it. Run the same version everywhere.`,
        );
      return "deleted" in checkpoint ? "deleted" : checkpoint;
    },
  };
}
