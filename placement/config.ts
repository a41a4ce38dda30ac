/** Placement's settings. */

import { constant, flag, positiveInteger, type Settings, type Values } from "../shared/settings/settings.ts";
import type { DecideOptions } from "./decide.ts";

export const placementSettings = {
  serverSilenceMsMax: {
    parse: positiveInteger,
    fallback: 600,
    meaning:
      "Milliseconds without a heartbeat after which a room server counts as dead. Servers with a longer heartbeat interval get three intervals.",
  },
  /** Milliseconds after which a placement leader that does not renew its lease is replaced. */
  placementLeaseMs: constant(3_000),
  controlLoopMs: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Milliseconds between two evaluations of room and server load by placement.",
  },
  hotRoomPercent: {
    parse: positiveInteger,
    fallback: 30,
    meaning: "Share of a server's budget, in percent, above which a room is moved to another server.",
  },
  /** Milliseconds that a room must stay below half of `hotRoomPercent` before it leaves the pool "dedicated". */
  hotRoomCalmMs: constant(600_000),
  imbalancePercent: {
    parse: positiveInteger,
    fallback: 10,
    meaning:
      "Deviation of a server's room count from the mean, in percent, above which rooms are moved. Deviations below three times the square root of the mean are ignored.",
  },
  /** Maximum number of rooms that one placement plan moves. Rooms of lost servers are not counted. */
  movesPerPlanMax: constant(64),
  /** Maximum number of replicas that one placement plan starts. */
  followsPerPlanMax: constant(500),
  fullServerPercent: {
    parse: positiveInteger,
    fallback: 90,
    meaning: "Budget use, in percent, above which a room server receives no more rooms and hands over some of its rooms.",
  },
  /** Maximum number of rooms that one placement plan takes from an overloaded server. */
  reliefsPerPlanMax: constant(8),
  warmCopies: {
    parse: flag,
    fallback: true,
    meaning: "Keep a replica of each room on a second room server, for fast failover.",
  },
} as const satisfies Settings;

export type PlacementConfig = Values<typeof placementSettings>;

/** The settings in the form that `decide.ts` expects. */
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
