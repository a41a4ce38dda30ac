/** Placement's settings. */

import { positiveInteger, type Settings, type Values } from "../shared/config.ts";

export const placementSettings = {
  serverSilenceMsMax: { parse: positiveInteger, fallback: 750, meaning: "a room server not heard for so many milliseconds is taken for dead: three heartbeats at the least" },
} as const satisfies Settings;

export type PlacementConfig = Values<typeof placementSettings>;
