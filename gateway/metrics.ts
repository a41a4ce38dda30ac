/** Metrics of the gateway. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type GatewayMetrics = ReturnType<typeof gatewayMetrics>;

export const gatewayMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    connections: new Gauge({ name: "coroom_gateway_connections", help: "Open WebSocket connections", registers }),
    partialBytes: new Gauge({
      name: "coroom_gateway_partial_bytes",
      help: "Bytes of frames whose last part has not arrived",
      registers,
    }),
    partialBytesMax: new Gauge({
      name: "coroom_gateway_partial_bytes_max",
      help: "Maximum of coroom_gateway_partial_bytes, from the settings",
      registers,
    }),
    rooms: new Gauge({ name: "coroom_gateway_rooms", help: "Rooms that this gateway is subscribed to", registers }),
    connects: new Counter({ name: "coroom_gateway_connects_total", help: "WebSocket connections opened", registers }),
    turnedAway: new Counter({
      name: "coroom_gateway_turned_away_total",
      help: "Connections rejected, by reason: full, origin, degraded, draining, misconfigured, ip, herd (the admission queue is full)",
      labelNames: ["reason"],
      registers,
    }),
    onCredit: new Gauge({
      name: "coroom_gateway_connections_on_credit",
      help: "Reconnected clients above the limit of their user or tenant, admitted because their lost connections are still counted",
      registers,
    }),
    limitsReached: new Counter({
      name: "coroom_gateway_limits_reached_total",
      help: "Times that a limit was reached, by limit. Across gateways: user, user-edits, tenant, tenant-rooms, room, tenant-edits. Set by the room's owner: room-budget. Bytes of edits times recipients: room-delivery, tenant-delivery. Edits that a gateway holds for the log: room-unacked, gateway-unacked. Per connection: edits, presence, frames, bytes, catch-ups. Per user: snapshots, room-lists, streams, document-writes, activities. Per tenant and gateway: tenant-activities, tenant-boards. Per gateway: gateway-snapshots, gateway-streams, writes, bodies, partial-frames, first-contents. Calls of documents and boards that wait for a connection: service-connections. Per HTTP request: body. Over HTTP, per room and tenant: stored-bytes. Stalled HTTP answers: answer-stall. Console requests and reads of usage: admin-reads. Tenants of a day beyond the limit, whose usage counts for (other), and whose stored bytes are missing: usage-tenants",
      labelNames: ["limit"],
      registers,
    }),
    tenantConnections: new Gauge({
      name: "coroom_gateway_tenant_connections",
      help: "Open connections with a valid token, by tenant. The busiest tenants are named, at most 50; (other) is the sum of all others",
      labelNames: ["tenant"],
      registers,
    }),
    tenantEdits: new Counter({
      name: "coroom_gateway_tenant_edits_total",
      help: "Stored edits of clients of this gateway, by tenant as in coroom_gateway_tenant_connections",
      labelNames: ["tenant"],
      registers,
    }),
    tenantBytes: new Counter({
      name: "coroom_gateway_tenant_bytes_total",
      help: "Bytes of frames by tenant and direction: received (from clients), delivered (edits and presence, once for each recipient)",
      labelNames: ["tenant", "direction"],
      registers,
    }),
    tenantRefusals: new Counter({
      name: "coroom_gateway_tenant_refusals_total",
      help: "Refused connections, joins, edits and presence by tenant. Connections are refused only after their token is checked",
      labelNames: ["tenant"],
      registers,
    }),
    usageWaiting: new Gauge({
      name: "coroom_gateway_usage_waiting",
      help: "Tenants whose usage waits for Redis, each once for every day. Usually below the number of tenants in ten seconds",
      registers,
    }),
    usageUnstored: new Gauge({
      name: "coroom_gateway_usage_unstored_seconds",
      help: "Seconds since Redis last took the usage of tenants. 0: nothing waits",
      registers,
    }),
    tokenChecks: new Counter({
      name: "coroom_gateway_token_checks_total",
      help: "Token verifications, by outcome: checked, known (from the cache)",
      labelNames: ["outcome"],
      registers,
    }),
    tokensWaiting: new Gauge({
      name: "coroom_gateway_tokens_waiting",
      help: "Tokens with an unknown key that wait for the next JWKS request",
      registers,
    }),
    countSources: new Gauge({
      name: "coroom_gateway_count_sources",
      help: "Other gateways and room servers that report counts to this gateway",
      registers,
    }),
    redisUnreached: new Gauge({
      name: "coroom_gateway_redis_unreached",
      help: "1 while the Redis that stores bans does not answer or cannot be written",
      registers,
    }),
    sanctions: new Gauge({ name: "coroom_gateway_sanctions", help: "Bans and downgrades in force", registers }),
    abuse: new Counter({
      name: "coroom_gateway_abuse_total",
      help: "Measures against abuse, by measure (hold-off: a connection was asked to retry later; ban) and suspect (user, address, tenant)",
      labelNames: ["measure", "suspect"],
      registers,
    }),
    suspects: new Gauge({ name: "coroom_gateway_suspects", help: "Users, addresses and tenants with an abuse score", registers }),
    faults: new Counter({
      name: "coroom_gateway_faults_total",
      help: "Faults that raise an abuse score, by kind: connect, join, bad-token, no-hello, too-fast, too-large, bad-frame",
      labelNames: ["fault"],
      registers,
    }),
    connectsWaiting: new Gauge({
      name: "coroom_gateway_connects_waiting",
      help: "Connections in the admission queue",
      registers,
    }),
    connectWaitSeconds: new Histogram({
      name: "coroom_gateway_connect_wait_seconds",
      help: "Seconds a connection waited in the admission queue",
      buckets: [0.01, 0.05, 0.2, 0.5, 1, 2, 5],
      registers,
    }),
    behind: new Gauge({
      name: "coroom_gateway_behind_connections",
      help: "Connections with unread outbound data",
      registers,
    }),
    behindBytes: new Gauge({ name: "coroom_gateway_behind_bytes", help: "Unread outbound bytes of all open connections", registers }),
    closing: new Gauge({
      name: "coroom_gateway_closing_connections",
      help: "Closing connections: their clients may still read the remaining data for a limited time",
      registers,
    }),
    closingBytes: new Gauge({
      name: "coroom_gateway_closing_bytes",
      help: "Outbound bytes that the clients of closing connections have not read yet",
      registers,
    }),
    closes: new Counter({
      name: "coroom_gateway_closes_total",
      help: "Connections closed by the gateway, by the name of the close code; cut: without a code, above COROOM_OUTBOUND_BYTES_MAX",
      labelNames: ["close"],
      registers,
    }),
    refusedConnections: new Counter({
      name: "coroom_gateway_refused_connections_total",
      help: "Connections closed before their token was accepted, by the name of the close code",
      labelNames: ["close"],
      registers,
    }),
    ends: new Counter({
      name: "coroom_gateway_connection_ends_total",
      help: "Ended connections, by cause: gateway (closed with a code, or cut above COROOM_OUTBOUND_BYTES_MAX), client (closed by the page or the SDK), network (lost without a close)",
      labelNames: ["cause"],
      registers,
    }),
    lagging: new Gauge({
      name: "coroom_gateway_lagging_connections",
      help: "Connections whose oldest unread data is older than 1 s",
      registers,
    }),
    replays: new Counter({
      name: "coroom_gateway_replay_requests_total",
      help: "Requests of clients for edits that they lack in a room that they have joined",
      registers,
    }),
    joins: new Counter({
      name: "coroom_gateway_joins_total",
      help: "Joins, by outcome: joined, resync, or the reason of the refusal. room-busy: the room is over its budget. no-content: the application gave no first content. Clients receive unavailable for both",
      labelNames: ["outcome"],
      registers,
    }),
    joinSeconds: new Histogram({
      name: "coroom_gateway_join_seconds",
      help: "Seconds from JOIN to JOINED",
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    }),
    edits: new Counter({ name: "coroom_gateway_edits_received_total", help: "Edits received from clients", registers }),
    resends: new Counter({
      name: "coroom_gateway_edits_resent_total",
      help: "Unacknowledged edits that were sent to an owner again",
      registers,
    }),
    forwardsGathered: new Counter({
      name: "coroom_gateway_forwards_gathered_total",
      help: "Messages to room owners that waited up to 45 ms for further edits, because their room was over its fair share",
      registers,
    }),
    saveSeconds: new Histogram({
      name: "coroom_gateway_save_seconds",
      help: "Seconds from an edit's receipt until its record in the log arrived and it was sent to the members; one edit per room at a time",
      buckets: [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2, 5, 10],
      registers,
    }),
    nacks: new Counter({ name: "coroom_gateway_nacks_total", help: "Refused edits, by reason", labelNames: ["reason"], registers }),
    committedFrames: new Counter({
      name: "coroom_gateway_committed_frames_total",
      help: "Frames with committed edits that were published to the members of a room",
      registers,
    }),
    committedEdits: new Counter({
      name: "coroom_gateway_committed_edits_total",
      help: "Committed edits published to the members of a room",
      registers,
    }),
    presenceFrames: new Counter({
      name: "coroom_gateway_presence_received_total",
      help: "Presence frames received from clients",
      registers,
    }),
    presenceRefused: new Counter({
      name: "coroom_gateway_presence_refused_total",
      help: "Presence frames discarded, by the exceeded limit: rate, bytes",
      labelNames: ["limit"],
      registers,
    }),
    presenceDelayed: new Counter({
      name: "coroom_gateway_presence_delayed_total",
      help: "Presence states so large that the next state of their member waited longer",
      registers,
    }),
    presenceDeltas: new Counter({
      name: "coroom_gateway_presence_deltas_total",
      help: "Presence delta frames published to the members of a room",
      registers,
    }),
    presenceDeltaBytes: new Counter({
      name: "coroom_gateway_presence_delta_bytes_total",
      help: "Bytes of published presence delta frames. A frame counts once, also if many clients receive it",
      registers,
    }),
    presenceUnsent: new Counter({
      name: "coroom_gateway_presence_unsent_total",
      help: "Presence messages discarded because they exceed max_payload of NATS",
      registers,
    }),
    presenceBehind: new Counter({
      name: "coroom_gateway_presence_behind_total",
      help: "Times that presence to a slow client was paused until it had read its outbound data",
      registers,
    }),
    presenceSyncs: new Counter({
      name: "coroom_gateway_presence_syncs_total",
      help: "Presence snapshots received from owners, for new rooms and after missed deltas",
      registers,
    }),
    gaps: new Counter({ name: "coroom_gateway_gaps_total", help: "Gaps in a room's edits that were repaired by a request", registers }),
    searches: new Counter({
      name: "coroom_gateway_owner_searches_total",
      help: "Searches for a room's owner, by cause: no-responders, lost, silent",
      labelNames: ["cause"],
      registers,
    }),
    searchesWaiting: new Gauge({
      name: "coroom_gateway_owner_searches_waiting",
      help: "Searches for a room's owner that wait for their turn",
      registers,
    }),
    catchUpBytes: new Counter({
      name: "coroom_gateway_catch_up_bytes_total",
      help: "Bytes of earlier edits sent to clients that requested them",
      registers,
    }),
    claims: new Counter({
      name: "coroom_gateway_claims_total",
      help: "Requests to a room server to claim a room, by answer",
      labelNames: ["answer"],
      registers,
    }),
    unreadable: new Counter({ name: "coroom_gateway_unreadable_total", help: "NATS messages that do not decode", registers }),
    unackedEdits: new Gauge({
      name: "coroom_gateway_unacked_edits",
      help: "Edits of clients that the gateway holds until the log contains them",
      registers,
    }),
    unackedBytes: new Gauge({
      name: "coroom_gateway_unacked_bytes",
      help: "Bytes of the edits that the gateway holds until the log contains them",
      registers,
    }),
    writes: new Gauge({ name: "coroom_gateway_writes", help: "HTTP edits that wait for the log", registers }),
    writeSeconds: new Histogram({
      name: "coroom_gateway_write_seconds",
      help: "Seconds that HTTP edits waited for the log, by outcome: committed, refused, unanswered",
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      labelNames: ["outcome"],
      registers,
    }),
    boardReads: new Counter({
      name: "coroom_gateway_board_reads_total",
      help: "HTTP board requests, by status code",
      labelNames: ["status"],
      registers,
    }),
    activities: new Counter({
      name: "coroom_gateway_activities_total",
      help: "Activity reports, by source (backend, presence) and outcome: stored, known (a duplicate), full (the stream could not store it), unavailable (not confirmed, may be retried)",
      labelNames: ["by", "outcome"],
      registers,
    }),
    boards: new Gauge({ name: "coroom_gateway_boards", help: "Boards watched by connections", registers }),
    boardWatchers: new Gauge({
      name: "coroom_gateway_board_watchers",
      help: "Board subscriptions of connections",
      registers,
    }),
    shedLevel: new Gauge({
      name: "coroom_gateway_shed_level",
      help: "Shed level: number of steps in the drop order that are in effect, 0 to 6",
      registers,
    }),
    outboundP99Seconds: new Gauge({
      name: "coroom_gateway_outbound_p99_seconds",
      help: "Outbound delay, p99 of all connections. The delay of a connection is the event loop delay plus the age of its oldest unread data. Up to nine slow connections are ignored",
      registers,
    }),
    loopDelaySeconds: new Gauge({
      name: "coroom_gateway_loop_delay_seconds",
      help: "Event loop delay, p90 of the last half second",
      registers,
    }),
    natsLagSeconds: new Gauge({
      name: "coroom_gateway_nats_lag_seconds",
      help: "Round trip time of a NATS message",
      registers,
    }),
    jetstreamBytes: new Gauge({ name: "coroom_gateway_jetstream_bytes", help: "Bytes that JetStream stores, of all streams", registers }),
    events: new Counter({
      name: "coroom_gateway_events_total",
      help: "Operations events published, by kind",
      labelNames: ["kind"],
      registers,
    }),
    backboneConnected: new Gauge({ name: "coroom_gateway_backbone_connected", help: "1 while NATS is reachable", registers }),
  };
};

/** Gauges of queues: the number of waiting connections, and of what they wait for. */
type Waiting = { readonly count: number; readonly bytes: number };

export function countBehind(
  metrics: Pick<GatewayMetrics, "behind" | "behindBytes" | "closing" | "closingBytes" | "lagging">,
  behind: Waiting & { readonly laggingCount: number },
  closing: Waiting,
): void {
  metrics.behind.set(behind.count);
  metrics.behindBytes.set(behind.bytes);
  metrics.lagging.set(behind.laggingCount);
  metrics.closing.set(closing.count);
  metrics.closingBytes.set(closing.bytes);
}
