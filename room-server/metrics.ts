/** The room server's metrics. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type RoomServerMetrics = ReturnType<typeof roomServerMetrics>;

const APPEND_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 10];

const HAND_OVER_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

const TAKE_OVER_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const roomServerMetrics = (registry: Registry) => {
  const registers = [registry];
  const metrics = {
    rooms: new Gauge({ name: "coroom_room_server_rooms", help: "Rooms that this server owns or is claiming", registers }),
    roomsByMode: new Gauge({
      name: "coroom_room_server_rooms_by_mode",
      help: "Rooms that this server owns, by presence mode: flat, hierarchical",
      labelNames: ["mode"],
      registers,
    }),
    logFull: new Gauge({
      name: "coroom_room_server_log_full",
      help: "1 while the log stores no edits, because its storage or its disk is full, else 0",
      registers,
    }),
    backlogBytes: new Gauge({ name: "coroom_room_server_backlog_bytes", help: "Bytes of edits in memory backlogs", registers }),
    claims: new Counter({
      name: "coroom_room_server_claims_total",
      help: "Claim requests, by reply: owned, elsewhere, deleted, refused",
      labelNames: ["reply"],
      registers,
    }),
    ends: new Counter({
      name: "coroom_room_server_ownerships_ended_total",
      help: "Ended ownerships, by reason: released, handed-over, fenced, failed, deleted",
      labelNames: ["why"],
      registers,
    }),
    handovers: new Counter({
      name: "coroom_room_server_hand_overs_total",
      help: "Handovers to another server, by outcome: done, or the step that failed",
      labelNames: ["outcome"],
      registers,
    }),
    handOverSeconds: new Histogram({
      name: "coroom_room_server_hand_over_seconds",
      help: "Seconds that a room's edits waited during a handover",
      buckets: HAND_OVER_BUCKETS,
      registers,
    }),
    replicas: new Gauge({
      name: "coroom_room_server_replicas",
      help: "Replicas of other servers' rooms on this server",
      registers,
    }),
    warmClaims: new Counter({
      name: "coroom_room_server_warm_claims_total",
      help: "Claims, by copy: warm (this server had a replica), cold",
      labelNames: ["copy"],
      registers,
    }),
    takeOverSeconds: new Histogram({
      name: "coroom_room_server_take_over_seconds",
      help: "Seconds from detecting a lost room server until all its rooms with a replica here were claimed or abandoned",
      buckets: TAKE_OVER_BUCKETS,
      registers,
    }),
    holes: new Counter({
      name: "coroom_room_server_log_holes_total",
      help: "Rooms whose new owner found that edits are missing: neither the log nor a checkpoint contains them",
      registers,
    }),
    editsCommitted: new Counter({
      name: "coroom_edits_committed_total",
      help: "Edits committed to the log by this server",
      registers,
    }),
    editsRepeated: new Counter({ name: "coroom_edits_repeated_total", help: "Received edits that the log already contained", registers }),
    editsRefused: new Counter({ name: "coroom_edits_refused_total", help: "Refused edits, by reason", labelNames: ["reason"], registers }),
    editsTentative: new Counter({
      name: "coroom_edits_tentative_total",
      help: "Tentative edits: edits that the owner sent to the members of a room while the log was slow, before the log contained them",
      registers,
    }),
    savingChanges: new Counter({
      name: "coroom_room_saving_changes_total",
      help: "Changes of a room's saving state, by new state: saved, saving, refusing",
      labelNames: ["state"],
      registers,
    }),
    appendSeconds: new Histogram({
      name: "coroom_log_append_seconds",
      help: "Seconds from the append of a record to the log's confirmation",
      buckets: APPEND_BUCKETS,
      registers,
    }),
    appendRetries: new Counter({
      name: "coroom_log_append_retries_total",
      help: "Repeated appends, by cause: silence (no answer), unavailable (NATS could not store it), disconnect (from NATS), batch (the log refused the batch of the append)",
      labelNames: ["cause"],
      registers,
    }),
    batchedAppends: new Counter({
      name: "coroom_log_batched_appends_total",
      help: "Appends sent in a batch with those of other rooms, to a log with replicas while many appends are in flight",
      registers,
    }),
    catchUps: new Counter({
      name: "coroom_catch_ups_total",
      help: "Catch-up messages, by source: backlog, log, resync",
      labelNames: ["source"],
      registers,
    }),
    limitsReached: new Counter({
      name: "coroom_room_server_limits_reached_total",
      help: "Times that a limit of the room server was reached, by name of the limit; rooms is the limit COROOM_ROOMS_MAX",
      labelNames: ["limit"],
      registers,
    }),
    loopDelaySeconds: new Gauge({
      name: "coroom_room_server_loop_delay_seconds",
      help: "Event loop delay, p90 of the last second",
      registers,
    }),
    roomsHeldBack: new Gauge({
      name: "coroom_room_server_rooms_held_back",
      help: "Rooms that are throttled because they exceed their budget on an overloaded server, by level: 1 to 3 send less presence, 4 delays commits, 5 refuses joins",
      labelNames: ["level"],
      registers,
    }),
    events: new Counter({
      name: "coroom_room_server_events_total",
      help: "Operations events published, by kind",
      labelNames: ["kind"],
      registers,
    }),
    participants: new Gauge({ name: "coroom_participants", help: "Participants of the rooms that this server owns", registers }),
    presenceBytes: new Gauge({ name: "coroom_presence_bytes", help: "Bytes of presence fields in memory", registers }),
    presenceDeltas: new Counter({
      name: "coroom_presence_deltas_total",
      help: "Presence deltas published",
      registers,
    }),
    presenceDeltaBytes: new Counter({ name: "coroom_presence_delta_bytes_total", help: "Bytes of published presence deltas", registers }),
    presenceUnsent: new Counter({
      name: "coroom_presence_unsent_total",
      help: "Presence messages discarded because they exceed max_payload of NATS",
      registers,
    }),
    presenceSyncs: new Counter({
      name: "coroom_presence_syncs_total",
      help: "Presence snapshots sent to gateways that are new to a room or missed a delta",
      registers,
    }),
    modeChanges: new Counter({
      name: "coroom_mode_transitions_total",
      help: "Mode transitions of rooms, by new mode: flat, hierarchical",
      labelNames: ["to"],
      registers,
    }),
    gatewaysAlive: new Gauge({ name: "coroom_room_server_gateways", help: "Gateways whose heartbeats this server receives", registers }),
    gatewaysLost: new Counter({
      name: "coroom_room_server_gateways_lost_total",
      help: "Gateways that stopped sending heartbeats. Their members leave the rooms",
      registers,
    }),
    messagesUnread: new Counter({ name: "coroom_room_server_messages_unread_total", help: "NATS messages that do not decode", registers }),
  };
  metrics.savingChanges.inc({ state: "refusing" }, 0); // Prometheus sees no increase in a counter that appears with a value.
  return metrics;
};
