/** What placement counts. */

import { Counter, type Registry } from "prom-client";

export type PlacementMetrics = ReturnType<typeof placementMetrics>;

export const placementMetrics = (registry: Registry) => ({
  locates: new Counter({ name: "coroom_placement_locates_total", help: "Questions for a room's owner, by answer: server, none", labelNames: ["answer"], registers: [registry] }),
});
