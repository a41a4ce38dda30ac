/** Metrics of the probe role, by kind of room. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

import { BUCKETS as buckets } from "./budget.ts";
import { PROBE_ROOM_KINDS } from "./plan.ts";

export type ProbeMetrics = ReturnType<typeof probeMetrics>;

export const probeMetrics = (registry: Registry) => {
  const registers = [registry];
  const labelNames = ["room"] as const;
  const metrics = {
    propagationSeconds: new Histogram({
      name: "coroom_probe_propagation_seconds",
      help: "Seconds from making an edit until another connected participant has it",
      labelNames,
      buckets,
      registers,
    }),
    ackSeconds: new Histogram({
      name: "coroom_probe_ack_seconds",
      help: "Seconds from making an edit to its acknowledgement, resends included",
      labelNames,
      buckets,
      registers,
    }),
    presenceSeconds: new Histogram({
      name: "coroom_probe_presence_seconds",
      help: "Seconds from moving a pointer until the other participant sees that position. Skipped positions are not counted",
      labelNames,
      buckets,
      registers,
    }),
    presenceOvertaken: new Counter({
      name: "coroom_probe_presence_overtaken_total",
      help: "Pointer positions that the other participant never saw because a newer one arrived first",
      labelNames,
      registers,
    }),
    roundTripSeconds: new Histogram({
      name: "coroom_probe_connection_round_trip_seconds",
      help: "Seconds from a client's PING to the gateway's PONG",
      labelNames,
      buckets,
      registers,
    }),
    firstMessageSeconds: new Histogram({
      name: "coroom_probe_first_message_seconds",
      help: "Seconds from requesting a WebSocket to the gateway's WELCOME",
      labelNames,
      buckets,
      registers,
    }),
    reconnectSeconds: new Histogram({
      name: "coroom_probe_reconnect_seconds",
      help: "Seconds from a lost connection until the participant is synced again, retry delay included. Only successful reconnects are counted",
      labelNames,
      buckets,
      registers,
    }),
    connectFailures: new Counter({
      name: "coroom_probe_connect_failures_total",
      help: "Failed connection attempts, by cause: unreachable, broken, or the name of the close code",
      labelNames: ["room", "cause"],
      registers,
    }),
    refused: new Counter({
      name: "coroom_probe_refused_total",
      help: "Times that a gateway permanently refused a participant of the probe because of its token or its room",
      labelNames,
      registers,
    }),
    lost: new Counter({
      name: "coroom_probe_edits_lost_total",
      help: "Lost edits: a participant has later edits of the room, but not this one. Must stay 0",
      labelNames,
      registers,
    }),
    rolledBack: new Counter({
      name: "coroom_probe_rolled_back_total",
      help: "Times that the log no longer contained edits that a participant had received. Must stay 0",
      labelNames,
      registers,
    }),
    late: new Counter({
      name: "coroom_probe_edits_late_total",
      help: "Acknowledged edits that a connected participant did not receive in time",
      labelNames,
      registers,
    }),
    unjudged: new Counter({
      name: "coroom_probe_edits_unjudged_total",
      help: "Edits that the probe could not check because a participant started from a snapshot or too many edits were waiting",
      labelNames,
      registers,
    }),
    withheld: new Counter({
      name: "coroom_probe_edits_withheld_total",
      help: "Edits that the probe omitted because too many earlier edits of the writer were unacknowledged",
      labelNames,
      registers,
    }),
    gaps: new Counter({
      name: "coroom_probe_sequence_gaps_total",
      help: "Gaps in the received edits that a participant repaired by a request",
      labelNames,
      registers,
    }),
    oldestEditSeconds: new Gauge({
      name: "coroom_probe_oldest_edit_seconds",
      help: "Age of the oldest edit that is not yet acknowledged or not yet received by all participants",
      labelNames,
      registers,
    }),
    away: new Gauge({
      name: "coroom_probe_away_participants",
      help: "Participants that are not synced: connecting or waiting for a retry",
      labelNames,
      registers,
    }),
    loopDelaySeconds: new Gauge({
      name: "coroom_probe_loop_delay_seconds",
      help: "Event loop delay of the probe process, p90 of the last second. Each measurement of the probe may be too long by this time",
      registers,
    }),
  };
  // Creates each series at the start: a rate over a series that appears later would miss its first increment.
  for (const room of PROBE_ROOM_KINDS)
    for (const counter of [
      metrics.lost,
      metrics.rolledBack,
      metrics.late,
      metrics.unjudged,
      metrics.withheld,
      metrics.gaps,
      metrics.refused,
      metrics.presenceOvertaken,
    ])
      counter.inc({ room }, 0);
  return metrics;
};
