/** What `coroom start` reads: its own settings and those of every role. One list, so that --help shows all. */

import { documentServiceSettings } from "../document-service/config.ts";
import { gatewaySettings } from "../gateway/config.ts";
import { leaderboardSettings } from "../leaderboard/config.ts";
import { placementSettings } from "../placement/config.ts";
import { probeSettings } from "../probe/config.ts";
import { roomServerSettings } from "../room-server/config.ts";
import { flag, list, port, type Settings, SettingError, text, type Values } from "../shared/config.ts";
import { sharedSettings } from "../shared/settings.ts";
import { yWebsocketSettings } from "../y-websocket/config.ts";
import { healthSettings } from "./health.ts";
import { idleMemorySettings } from "./idle-memory.ts";

export const ROLES = ["engines", "placement", "room-server", "document-service", "leaderboard", "gateway", "y-websocket", "probe"] as const;
export type Role = (typeof ROLES)[number];

/** Without those that only some have a use for: clients of y-websocket, somebody whom a probe would wake. */
const USUAL_ROLES: readonly Role[] = ROLES.filter((role) => role !== "y-websocket" && role !== "probe");

const processSettings = {
  roles: {
    parse: roles,
    fallback: USUAL_ROLES,
    meaning: `what this process runs, comma-separated: ${ROLES.join(", ")}; engines are a local nats-server and redis-server, each only where its URL is not set`,
  },
  dataDir: { parse: text, fallback: ".coroom/data", meaning: "folder for the engines' data and the local secrets" },
  cacheDir: { parse: text, fallback: ".coroom/cache", meaning: "folder for engines that had to be fetched" },
  natsPort: { parse: port, fallback: 0, meaning: "port of the local nats-server; 0: any free one" },
  redisPort: { parse: port, fallback: 0, meaning: "port of the local redis-server; 0: any free one" },
  demo: {
    parse: flag,
    fallback: true,
    meaning: "serve the demo page and hand out tokens for it; never in production, nor where a key to check tokens with is set",
  },
  operationsPage: {
    parse: flag,
    fallback: true,
    meaning: "serve the operations console at /operations/; it shows nothing without an operator's pass or an administrator's token",
  },
  ...healthSettings,
  ...idleMemorySettings,
} as const satisfies Settings;

export const startSettings = {
  ...processSettings,
  ...sharedSettings,
  natsUrl: { ...sharedSettings.natsUrl, fallback: "", meaning: "the NATS servers, comma-separated; empty: a local one is started" },
  ...placementSettings,
  ...roomServerSettings,
  ...documentServiceSettings,
  ...leaderboardSettings,
  redisUrl: {
    ...leaderboardSettings.redisUrl,
    fallback: "",
    meaning:
      "the Redis that boards are kept in, as redis://user:password@host:port/number, rediss:// over TLS, or several nodes of a Redis Cluster, comma-separated; empty: a local one is started",
  },
  ...gatewaySettings,
  ...yWebsocketSettings,
  ...probeSettings,
} as const satisfies Settings;

/** Whose each is. What several roles read stands with each of them. */
export const startGroups: Readonly<Record<string, Settings>> = {
  "this process": processSettings,
  "every role": sharedSettings,
  "placement": placementSettings,
  "room-server": roomServerSettings,
  "document-service": documentServiceSettings,
  "leaderboard": leaderboardSettings,
  "gateway": gatewaySettings,
  "y-websocket": yWebsocketSettings,
  "probe": probeSettings,
};

export type StartConfig = Values<typeof startSettings>;

function roles(raw: string): readonly Role[] {
  const named = list(raw);
  const unknown = named.filter((role) => !ROLES.some((known) => known === role));
  if (named.length === 0 || unknown.length > 0) throw new SettingError(`must name roles out of ${ROLES.join(", ")}`);
  return ROLES.filter((role) => named.includes(role));
}
