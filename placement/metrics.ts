/** Placement's metrics. */

import { Counter, Gauge, type Registry } from "prom-client";

export type PlacementMetrics = ReturnType<typeof placementMetrics>;

export const placementMetrics = (registry: Registry) => {
  const registers = [registry];
  return {
    locates: new Counter({
      name: "coroom_placement_locates_total",
      help: "Requests for a room's owner, by answer: server, none",
      labelNames: ["answer"],
      registers,
    }),
    leads: new Gauge({ name: "coroom_placement_leads", help: "1 while this process is the placement leader", registers }),
    roomsWithoutReplica: new Gauge({
      name: "coroom_placement_rooms_without_replica",
      help: "Rooms without a planned replica: their next owner has to read the log. Counted by the placement leader, 0 elsewhere",
      registers,
    }),
    steps: new Counter({
      name: "coroom_placement_steps_total",
      help: "Steps of placement plans, by action (promote, move, follow, unfollow) and outcome (done, refused)",
      labelNames: ["action", "outcome"],
      registers,
    }),
    events: new Counter({
      name: "coroom_placement_events_total",
      help: "Operations events published, by kind",
      labelNames: ["kind"],
      registers,
    }),
  };
};
