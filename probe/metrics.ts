/** What the probe role measures, by kind of room. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

import { BUCKETS as buckets } from "./budget.ts";
import { KINDS } from "./plan.ts";

export type ProbeMetrics = ReturnType<typeof probeMetrics>;

export const probeMetrics = (registry: Registry) => {
  const registers = [registry];
  const labelNames = ["room"] as const;
  const metrics = {
    propagationSeconds: new Histogram({
      name: "coroom_probe_propagation_seconds",
      help: "From making an edit to another participant having it, where both lines stood",
      labelNames,
      buckets,
      registers,
    }),
    ackSeconds: new Histogram({
      name: "coroom_probe_ack_seconds",
      help: "From making an edit to its acknowledgement, however often it was sent",
      labelNames,
      buckets,
      registers,
    }),
    presenceSeconds: new Histogram({
      name: "coroom_probe_presence_seconds",
      help: "From pointing somewhere to the other of the pair seeing it; of what was never overtaken",
      labelNames,
      buckets,
      registers,
    }),
    presenceOvertaken: new Counter({
      name: "coroom_probe_presence_overtaken_total",
      help: "Places pointed at that the other never saw, having seen a newer one",
      labelNames,
      registers,
    }),
    roundTripSeconds: new Histogram({
      name: "coroom_probe_line_round_trip_seconds",
      help: "From a client's PING to the gateway's PONG",
      labelNames,
      buckets,
      registers,
    }),
    firstMessageSeconds: new Histogram({
      name: "coroom_probe_first_message_seconds",
      help: "From asking for a WebSocket to the gateway's WELCOME, at each connection",
      labelNames,
      buckets,
      registers,
    }),
    reconnectSeconds: new Histogram({
      name: "coroom_probe_reconnect_seconds",
      help: "From losing a line to having all of the room again, the wait before trying included; each is a reconnect that succeeded",
      labelNames,
      buckets,
      registers,
    }),
    connectFailures: new Counter({
      name: "coroom_probe_connect_failures_total",
      help: "Attempts to connect that failed, by cause: unreachable, broken, or the name of the close code",
      labelNames: ["room", "cause"],
      registers,
    }),
    refused: new Counter({
      name: "coroom_probe_refused_total",
      help: "Times that a participant was refused for good: its token, or the room",
      labelNames,
      registers,
    }),
    lost: new Counter({
      name: "coroom_probe_edits_lost_total",
      help: "Must stay 0: edits, each counted once for each participant that has all of the room up to behind it, and not the edit",
      labelNames,
      registers,
    }),
    rolledBack: new Counter({
      name: "coroom_probe_rolled_back_total",
      help: "Must stay 0: times that a participant was told that edits delivered to it are in the log no more",
      labelNames,
      registers,
    }),
    late: new Counter({
      name: "coroom_probe_edits_late_total",
      help: "Acknowledged edits that a participant whose line stands has not seen in time",
      labelNames,
      registers,
    }),
    unjudged: new Counter({
      name: "coroom_probe_edits_unjudged_total",
      help: "Edits of which cannot be told whether a participant had them: it began from a snapshot, or too many waited",
      labelNames,
      registers,
    }),
    withheld: new Counter({
      name: "coroom_probe_edits_withheld_total",
      help: "Edits that were due and not made, because too many of the writer's wait for their acknowledgement",
      labelNames,
      registers,
    }),
    gaps: new Counter({
      name: "coroom_probe_sequence_gaps_total",
      help: "Times that a participant missed edits in what came, and asked for them",
      labelNames,
      registers,
    }),
    oldestEditSeconds: new Gauge({
      name: "coroom_probe_oldest_edit_seconds",
      help: "For how long the oldest edit waits to be acknowledged, or seen by whoever is in the room",
      labelNames,
      registers,
    }),
    away: new Gauge({
      name: "coroom_probe_away_participants",
      help: "Participants that do not have all of their room: connecting, or between two attempts",
      labelNames,
      registers,
    }),
    loopDelaySeconds: new Gauge({
      name: "coroom_probe_loop_delay_seconds",
      help: "How late the probe's own event loop comes to what is due, p90 of the last second: what it measures is late by as much",
      registers,
    }),
  };
  // Known before anything happens: a rate over what only then appears would miss the first.
  for (const room of KINDS)
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
