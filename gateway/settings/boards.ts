/** Boards over HTTP, and what backends tell of activities. */

import { boardSettings } from "../../shared/board-settings.ts";
import { positiveInteger, type Settings, type Values } from "../../shared/config.ts";
import type { HttpConfig } from "./http.ts";

export const gatewayBoardSettings = {
  boardReadBurst: {
    parse: positiveInteger,
    fallback: 20,
    meaning: "questions about boards that one user may ask a gateway at once over HTTP",
  },
  boardReadsPerSecond: {
    parse: positiveInteger,
    fallback: 5,
    meaning: "questions about boards that one user may ask a gateway over HTTP in the long run",
  },
  activityBurst: { parse: positiveInteger, fallback: 100, meaning: "times that one backend may tell a gateway of activities at once" },
  activitiesPerSecond: {
    parse: positiveInteger,
    fallback: 50,
    meaning: "times that one backend may tell a gateway of activities in the long run",
  },
  ...boardSettings,
} as const satisfies Settings;

type BoardConfig = Values<typeof gatewayBoardSettings>;

/** What the boards' HTTP keeps to. */
export function boardRouteOptions(config: BoardConfig & HttpConfig) {
  return {
    internalSecret: config.internalSecret,
    boardReads: { burst: config.boardReadBurst, perSecond: config.boardReadsPerSecond },
    readersMax: config.connectionsMax,
  };
}

/** What telling of activities keeps to. */
export function activityRouteOptions(config: BoardConfig & HttpConfig) {
  return {
    kinds: config.boardKinds.map(({ name }) => name),
    telling: { burst: config.activityBurst, perSecond: config.activitiesPerSecond },
    tellersMax: config.connectionsMax,
  };
}
