/** What a room server counts and measures. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type RoomServerMetrics = ReturnType<typeof roomServerMetrics>;

const APPEND_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 10];

const HAND_OVER_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

const TAKE_OVER_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const roomServerMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    rooms: new Gauge({ name: "coroom_room_server_rooms", help: "Rooms that this server owns or is claiming", registers }),
    backlogBytes: new Gauge({ name: "coroom_room_server_backlog_bytes", help: "Edits kept in memory for those who come back", registers }),
    claims: new Counter({
      name: "coroom_room_server_claims_total",
      help: "Claims asked for, by reply: owned, elsewhere, deleted, refused",
      labelNames: ["reply"],
      registers,
    }),
    ends: new Counter({
      name: "coroom_room_server_ownerships_ended_total",
      help: "Ownerships that ended: released, handed-over, fenced, failed, deleted",
      labelNames: ["why"],
      registers,
    }),
    handOvers: new Counter({
      name: "coroom_room_server_hand_overs_total",
      help: "Rooms handed over to another server, by outcome: done, or where it failed",
      labelNames: ["outcome"],
      registers,
    }),
    handOverSeconds: new Histogram({
      name: "coroom_room_server_hand_over_seconds",
      help: "For how long a room's edits waited while it was handed over",
      buckets: HAND_OVER_BUCKETS,
      registers,
    }),
    replicas: new Gauge({
      name: "coroom_room_server_replicas",
      help: "Rooms of other servers that this one keeps a warm copy of",
      registers,
    }),
    warmClaims: new Counter({
      name: "coroom_room_server_warm_claims_total",
      help: "Rooms claimed, by whether there was a warm copy: warm, cold",
      labelNames: ["copy"],
      registers,
    }),
    takeOverSeconds: new Histogram({
      name: "coroom_room_server_take_over_seconds",
      help: "From knowing that a room server is gone until all of its rooms that this one had a warm copy of were settled",
      buckets: TAKE_OVER_BUCKETS,
      registers,
    }),
    holes: new Counter({
      name: "coroom_room_server_log_holes_total",
      help: "Rooms claimed whose log lacks edits that no checkpoint covers",
      registers,
    }),
    editsCommitted: new Counter({
      name: "coroom_edits_committed_total",
      help: "Edits that the log holds by this server's appends",
      registers,
    }),
    editsRepeated: new Counter({ name: "coroom_edits_repeated_total", help: "Edits received that the log held already", registers }),
    editsRefused: new Counter({ name: "coroom_edits_refused_total", help: "Edits refused, by reason", labelNames: ["reason"], registers }),
    editsTentative: new Counter({ name: "coroom_edits_tentative_total", help: "Edits shown before the log held them", registers }),
    savingChanges: new Counter({
      name: "coroom_room_saving_changes_total",
      help: "Rooms that became saved, saving or refusing",
      labelNames: ["state"],
      registers,
    }),
    appendSeconds: new Histogram({
      name: "coroom_log_append_seconds",
      help: "From sending a record to knowing that the log holds it",
      buckets: APPEND_BUCKETS,
      registers,
    }),
    appendRetries: new Counter({
      name: "coroom_log_append_retries_total",
      help: "Records sent again, by what came instead of an answer: silence, unavailable, disconnect",
      labelNames: ["cause"],
      registers,
    }),
    catchUps: new Counter({
      name: "coroom_catch_ups_total",
      help: "Answers to catch-ups, a long one of which takes several, by source: backlog, log, resync",
      labelNames: ["source"],
      registers,
    }),
    limitsReached: new Counter({
      name: "coroom_room_server_limits_reached_total",
      help: "Times that something bounded was full, by which; rooms: the server has as many as it takes",
      labelNames: ["limit"],
      registers,
    }),
    loopDelaySeconds: new Gauge({
      name: "coroom_room_server_loop_delay_seconds",
      help: "How late the event loop comes to what is due, p90 of the last second",
      registers,
    }),
    roomsHeldBack: new Gauge({
      name: "coroom_room_server_rooms_held_back",
      help: "Rooms over their budget while the server is late, by how far they are held back: 1 to 3 tell less presence, 4 gather edits for longer, 5 take nobody new",
      labelNames: ["level"],
      registers,
    }),
    events: new Counter({
      name: "coroom_room_server_events_total",
      help: "Events that operations were told of, by kind",
      labelNames: ["kind"],
      registers,
    }),
    participants: new Gauge({ name: "coroom_participants", help: "Participants of the rooms that this server owns", registers }),
    presenceBytes: new Gauge({ name: "coroom_presence_bytes", help: "What participants show, kept in memory", registers }),
    presenceNews: new Counter({
      name: "coroom_presence_news_total",
      help: "Times that a room was told what had changed of its presence",
      registers,
    }),
    presenceNewsBytes: new Counter({ name: "coroom_presence_news_bytes_total", help: "Bytes of that", registers }),
    presenceUnsent: new Counter({
      name: "coroom_presence_unsent_total",
      help: "Messages of presence above NATS's max_payload, passed over",
      registers,
    }),
    presenceSyncs: new Counter({
      name: "coroom_presence_syncs_total",
      help: "Gateways that were told the whole of a room's presence: new to the room, or having missed something",
      registers,
    }),
    modeChanges: new Counter({
      name: "coroom_mode_transitions_total",
      help: "Rooms whose presence changed its mode, by the new one: flat, hierarchical",
      labelNames: ["to"],
      registers,
    }),
    gatewaysAlive: new Gauge({ name: "coroom_room_server_gateways", help: "Gateways that this server hears of", registers }),
    gatewaysLost: new Counter({
      name: "coroom_room_server_gateways_lost_total",
      help: "Gateways that fell silent, and took their members along",
      registers,
    }),
    messagesUnread: new Counter({ name: "coroom_room_server_messages_unread_total", help: "Messages that did not decode", registers }),
  };
};
