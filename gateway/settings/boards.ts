/** Settings of boards over HTTP, and of the activities that backends report. */

import { boardSettings } from "../../shared/settings/board-settings.ts";
import { constant, positiveInteger, type Settings, type Values } from "../../shared/settings/settings.ts";
import type { HttpConfig } from "./http.ts";

export const gatewayBoardSettings = {
  boardReadBurst: {
    parse: positiveInteger,
    fallback: 20,
    meaning: "Number of board requests that one user may send over HTTP at once.",
  },
  boardReadsPerSecond: {
    parse: positiveInteger,
    fallback: 5,
    meaning: "Maximum sustained board requests per second and user over HTTP.",
  },
  /** Milliseconds for which a page of a tenant's board answers all clients that poll it. */
  boardSharedMs: constant(1_000),
  /** Maximum bytes of such pages in a gateway's memory. Further ones are fetched for each client. */
  boardSharedBytesMax: constant(16_777_216),
  activityBurst: { parse: positiveInteger, fallback: 100, meaning: "Number of activity reports that one backend may send at once." },
  activitiesPerSecond: {
    parse: positiveInteger,
    fallback: 50,
    meaning: "Maximum sustained activity reports per second, per token user (sub) and gateway.",
  },
  /**
   * Bytes of reports that one tenant may store at once, and per second, through one gateway. Together they are less than
   * three quarters of COROOM_BOARD_ACTIVITY_BYTES_MAX between two checkpoints of a leaderboard.
   */
  tenantActivityBytesBurst: constant(8_388_608),
  tenantActivityBytesPerSecond: constant(262_144),
  ...boardSettings,
} as const satisfies Settings;

type BoardConfig = Values<typeof gatewayBoardSettings>;

/** Limits of board requests over HTTP. */
export function boardRouteOptions(config: BoardConfig & HttpConfig) {
  return {
    internalSecret: config.internalSecret,
    boardReads: { burst: config.boardReadBurst, perSecond: config.boardReadsPerSecond },
    readersMax: config.connectionsMax,
    sharedPages: { sharedMs: config.boardSharedMs, bytesMax: config.boardSharedBytesMax, isKept: isAnswered },
  };
}

/** A window without points is answered with 404 for all clients. */
function isAnswered(status: number): boolean {
  return status < 400 || status === 404;
}

/** Limits of activity reports. */
export function activityRouteOptions(config: BoardConfig & HttpConfig) {
  return {
    kinds: config.boardKinds.map(({ name }) => name),
    reportRate: { burst: config.activityBurst, perSecond: config.activitiesPerSecond },
    tenantBytes: { burst: config.tenantActivityBytesBurst, perSecond: config.tenantActivityBytesPerSecond },
    reportersMax: config.connectionsMax,
  };
}
