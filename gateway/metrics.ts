/** What a gateway counts. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type GatewayMetrics = ReturnType<typeof gatewayMetrics>;

export const gatewayMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    connections: new Gauge({ name: "coroom_gateway_connections", help: "Open WebSocket connections", registers }),
    rooms: new Gauge({ name: "coroom_gateway_rooms", help: "Rooms that this gateway follows", registers }),
    connects: new Counter({ name: "coroom_gateway_connects_total", help: "WebSocket connections opened", registers }),
    turnedAway: new Counter({
      name: "coroom_gateway_turned_away_total",
      help: "Connections turned away, by reason: full, origin, degraded, draining, misconfigured, ip; herd where the queue of new connections was full",
      labelNames: ["reason"],
      registers,
    }),
    onCredit: new Gauge({
      name: "coroom_gateway_connections_on_credit",
      help: "Connections taken past the limit of their address or tenant, until lines that were lost are counted no more",
      registers,
    }),
    limitsReached: new Counter({
      name: "coroom_gateway_limits_reached_total",
      help: "Times a limit was met, by limit: ip, where what was taken past it had to end; tenant, tenant-rooms, room, tenant-edits across the gateways; room-budget where the owner holds the room back; edits, frames, bytes, catch-ups of one connection; snapshots of one user, gateway-snapshots of all; streams, long answers over HTTP on their way to one user, gateway-streams to all; document-writes of one user, writes under way at this gateway; answer-stall, an HTTP answer that nobody took; bodies, of requests over HTTP that are in hand; admin-reads, questions of operations consoles",
      labelNames: ["limit"],
      registers,
    }),
    tokenChecks: new Counter({
      name: "coroom_gateway_token_checks_total",
      help: "Tokens shown, by outcome: checked, or known from a moment ago",
      labelNames: ["outcome"],
      registers,
    }),
    tokensWaiting: new Gauge({
      name: "coroom_gateway_tokens_waiting",
      help: "Tokens of no known key that wait for the JWKS to be fetched again",
      registers,
    }),
    countSources: new Gauge({
      name: "coroom_gateway_count_sources",
      help: "Other gateways and room servers whose counts are known",
      registers,
    }),
    redisUnreached: new Gauge({
      name: "coroom_gateway_redis_unreached",
      help: "1 while the Redis that bans are kept in does not answer",
      registers,
    }),
    sanctions: new Gauge({ name: "coroom_gateway_sanctions", help: "Bans and downgrades in force", registers }),
    abuse: new Counter({
      name: "coroom_gateway_abuse_total",
      help: "What came of abuse: hold-off, a connection told to wait; ban, a user or an address banned; suspect: user, address or tenant",
      labelNames: ["measure", "suspect"],
      registers,
    }),
    suspects: new Gauge({ name: "coroom_gateway_suspects", help: "Users, addresses and tenants watched for abuse", registers }),
    faults: new Counter({
      name: "coroom_gateway_faults_total",
      help: "What is held against users and addresses, by kind: connect, join, bad-token, no-hello, too-fast, too-large, bad-frame",
      labelNames: ["fault"],
      registers,
    }),
    connectsWaiting: new Gauge({
      name: "coroom_gateway_connects_waiting",
      help: "Connections that wait for their turn to be let in",
      registers,
    }),
    connectWaitSeconds: new Histogram({
      name: "coroom_gateway_connect_wait_seconds",
      help: "How long those waited that had to",
      buckets: [0.01, 0.05, 0.2, 0.5, 1, 2, 5],
      registers,
    }),
    behind: new Gauge({
      name: "coroom_gateway_behind_connections",
      help: "Connections that have not taken all that they were sent",
      registers,
    }),
    behindBytes: new Gauge({ name: "coroom_gateway_behind_bytes", help: "Bytes that wait for them", registers }),
    closing: new Gauge({
      name: "coroom_gateway_closing_connections",
      help: "Connections that are closed and have not taken all that they were sent: each has a moment for that",
      registers,
    }),
    closingBytes: new Gauge({ name: "coroom_gateway_closing_bytes", help: "Bytes that wait for them", registers }),
    closes: new Counter({
      name: "coroom_gateway_closes_total",
      help: "Connections that the gateway closed, by the name of the close code",
      labelNames: ["close"],
      registers,
    }),
    joins: new Counter({
      name: "coroom_gateway_joins_total",
      help: "Joins by outcome: joined, resync, or why refused",
      labelNames: ["outcome"],
      registers,
    }),
    joinSeconds: new Histogram({
      name: "coroom_gateway_join_seconds",
      help: "From JOIN to JOINED",
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    }),
    edits: new Counter({ name: "coroom_gateway_edits_received_total", help: "Edits taken from clients", registers }),
    resends: new Counter({ name: "coroom_gateway_edits_resent_total", help: "Un-acked edits sent to an owner again", registers }),
    nacks: new Counter({ name: "coroom_gateway_nacks_total", help: "Edits refused, by reason", labelNames: ["reason"], registers }),
    committedFrames: new Counter({
      name: "coroom_gateway_committed_frames_total",
      help: "Frames of committed edits published to a room's members",
      registers,
    }),
    committedEdits: new Counter({
      name: "coroom_gateway_committed_edits_total",
      help: "Committed edits published to a room's members",
      registers,
    }),
    presenceFrames: new Counter({
      name: "coroom_gateway_presence_received_total",
      help: "Frames of presence taken from clients",
      registers,
    }),
    presenceRefused: new Counter({
      name: "coroom_gateway_presence_refused_total",
      help: "Frames of presence passed over, by the limit that they were over: rate, bytes",
      labelNames: ["limit"],
      registers,
    }),
    presenceNews: new Counter({
      name: "coroom_gateway_presence_news_total",
      help: "Frames of presence news published to a room's members",
      registers,
    }),
    presenceNewsBytes: new Counter({
      name: "coroom_gateway_presence_news_bytes_total",
      help: "Bytes of such a frame, counted once however many it goes to",
      registers,
    }),
    presenceUnsent: new Counter({
      name: "coroom_gateway_presence_unsent_total",
      help: "Messages of presence above NATS's max_payload, passed over",
      registers,
    }),
    presenceBehind: new Counter({
      name: "coroom_gateway_presence_behind_total",
      help: "Times that a client was behind with what it was sent, and told of no presence until it had taken it",
      registers,
    }),
    presenceSyncs: new Counter({
      name: "coroom_gateway_presence_syncs_total",
      help: "Times that a room's whole presence came from its owner: the room was new here, or something was missed",
      registers,
    }),
    gaps: new Counter({ name: "coroom_gateway_gaps_total", help: "Times a room's edits had a gap that was asked for", registers }),
    searches: new Counter({
      name: "coroom_gateway_owner_searches_total",
      help: "Searches for a room's owner, by what led to them: no-responders, lost, silent",
      labelNames: ["cause"],
      registers,
    }),
    searchesWaiting: new Gauge({
      name: "coroom_gateway_owner_searches_waiting",
      help: "Rooms whose search for an owner waits for its turn",
      registers,
    }),
    catchUpBytes: new Counter({
      name: "coroom_gateway_catch_up_bytes_total",
      help: "Bytes of past edits that owners and this gateway sent because clients asked",
      registers,
    }),
    claims: new Counter({
      name: "coroom_gateway_claims_total",
      help: "Room servers asked to take a room, by answer",
      labelNames: ["answer"],
      registers,
    }),
    unreadable: new Counter({ name: "coroom_gateway_unreadable_total", help: "Messages from the bus that did not decode", registers }),
    unackedEdits: new Gauge({ name: "coroom_gateway_unacked_edits", help: "Edits held until the log has them", registers }),
    unackedBytes: new Gauge({ name: "coroom_gateway_unacked_bytes", help: "Bytes of edits held until the log has them", registers }),
    writes: new Gauge({ name: "coroom_gateway_writes", help: "Edits over HTTP that wait for the log", registers }),
    writeSeconds: new Histogram({
      name: "coroom_gateway_write_seconds",
      help: "How long those waited, by outcome: committed, refused, unanswered",
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      labelNames: ["outcome"],
      registers,
    }),
    boardReads: new Counter({
      name: "coroom_gateway_board_reads_total",
      help: "Questions about boards over HTTP, by the status of the answer",
      labelNames: ["status"],
      registers,
    }),
    activities: new Counter({
      name: "coroom_gateway_activities_total",
      help: "Activities worth points, by who told: backend, presence; and outcome: stored, known, full, unavailable",
      labelNames: ["by", "outcome"],
      registers,
    }),
    boards: new Gauge({ name: "coroom_gateway_boards", help: "Boards that connections watch", registers }),
    boardWatchers: new Gauge({
      name: "coroom_gateway_board_watchers",
      help: "Connections that watch boards, each counted once for each board",
      registers,
    }),
    boardFrames: new Counter({
      name: "coroom_gateway_board_frames_total",
      help: "Frames of boards: published, to all who watch at once; board and own-rank, each to one",
      labelNames: ["frame"],
      registers,
    }),
    shedLevel: new Gauge({
      name: "coroom_gateway_shed_level",
      help: "How far down the drop order this gateway is: 0 leaves nothing out",
      registers,
    }),
    outboundP99Seconds: new Gauge({
      name: "coroom_gateway_outbound_p99_seconds",
      help: "How late what is sent reaches clients: the event loop's delay, and for how long the oldest waits that a connection has not taken, p99 of all connections; up to nine slow ones are passed over",
      registers,
    }),
    loopDelaySeconds: new Gauge({
      name: "coroom_gateway_loop_delay_seconds",
      help: "How late the event loop comes to what is due, p90 of the last half second",
      registers,
    }),
    natsLagSeconds: new Gauge({
      name: "coroom_gateway_nats_lag_seconds",
      help: "How long what is said on NATS takes to get there and back",
      registers,
    }),
    events: new Counter({
      name: "coroom_gateway_events_total",
      help: "Events that operations were told of, by kind",
      labelNames: ["kind"],
      registers,
    }),
    backboneConnected: new Gauge({ name: "coroom_gateway_backbone_connected", help: "1 while NATS is reachable", registers }),
  };
};

/** Connections that something waits for, and how much. */
type Waiting = { readonly count: number; readonly bytes: number };

export function countBehind(
  metrics: Pick<GatewayMetrics, "behind" | "behindBytes" | "closing" | "closingBytes">,
  behind: Waiting,
  closing: Waiting,
): void {
  metrics.behind.set(behind.count);
  metrics.behindBytes.set(behind.bytes);
  metrics.closing.set(closing.count);
  metrics.closingBytes.set(closing.bytes);
}
