/** Placement's settings. */

import { flag, positiveInteger, type Settings, type Values } from "../shared/config.ts";
import type { DecideOptions } from "./decide.ts";

export const placementSettings = {
  serverSilenceMsMax: {
    parse: positiveInteger,
    fallback: 600,
    meaning:
      "a room server not heard for so many milliseconds is taken for dead, unless it says that its own heartbeats (heartbeatMs) come so seldom that it is fewer than three",
  },
  placementLeaseMs: {
    parse: positiveInteger,
    fallback: 3_000,
    meaning: "a leading placement process that stands still for so long is succeeded by another",
  },
  controlLoopMs: { parse: positiveInteger, fallback: 10_000, meaning: "how often placement looks at the rooms' and servers' load" },
  hotRoomPercent: {
    parse: positiveInteger,
    fallback: 30,
    meaning: "a room that takes a larger share of its server's budget is moved away from its neighbours",
  },
  hotRoomCalmMs: {
    parse: positiveInteger,
    fallback: 600_000,
    meaning: "a room in the pool dedicated that took less than half as much for so long goes back to the others",
  },
  imbalancePercent: {
    parse: positiveInteger,
    fallback: 10,
    meaning: "how far from the mean a server's number of rooms may be before some are moved",
  },
  movesPerPlanMax: { parse: positiveInteger, fallback: 64, meaning: "rooms that one plan moves; those of lost servers are not counted" },
  followsPerPlanMax: { parse: positiveInteger, fallback: 500, meaning: "warm copies that one plan begins" },
  fullServerPercent: {
    parse: positiveInteger,
    fallback: 90,
    meaning: "a room server that uses more of its budget takes no room while another can, and gives some away",
  },
  reliefsPerPlanMax: { parse: positiveInteger, fallback: 8, meaning: "rooms that one plan takes from such a server" },
  warmCopies: { parse: flag, fallback: true, meaning: "keep a warm copy of each room on a second server" },
} as const satisfies Settings;

export type PlacementConfig = Values<typeof placementSettings>;

/** As the decision calls them. */
export function decideOptions(config: PlacementConfig): DecideOptions {
  return {
    hotShare: config.hotRoomPercent / 100,
    imbalance: config.imbalancePercent / 100,
    movesMax: config.movesPerPlanMax,
    followsMax: config.followsPerPlanMax,
    fullShare: config.fullServerPercent / 100,
    reliefMax: config.reliefsPerPlanMax,
    keepsReplicas: config.warmCopies,
  };
}
