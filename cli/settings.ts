/** The settings of `coroom start`: its own and those of every role. They form one list, so that --help shows all. */

import { sharedSettings } from "../shared/settings/common-settings.ts";
import { flag, list, port, type Settings, SettingError, text, type Values, wholeNumber } from "../shared/settings/settings.ts";
import { yWebsocketSettings } from "../bridges/config.ts";
import { documentServiceSettings } from "../document-service/config.ts";
import { gatewaySettings } from "../gateway/config.ts";
import { leaderboardSettings } from "../leaderboard/config.ts";
import { placementSettings } from "../placement/config.ts";
import { probeSettings } from "../probe/config.ts";
import { roomServerSettings } from "../room-server/config.ts";

export const ROLES = [
  "engines",
  "placement",
  "room-server",
  "document-service",
  "leaderboard",
  "gateway",
  "y-websocket",
  "hocuspocus",
  "probe",
] as const;
export type Role = (typeof ROLES)[number];

/** The default roles. The others are useful only in some deployments. */
const USUAL_ROLES: readonly Role[] = ROLES.filter((role) => role !== "y-websocket" && role !== "hocuspocus" && role !== "probe");

const processSettings = {
  roles: {
    parse: roles,
    fallback: USUAL_ROLES,
    meaning:
      "Roles that this process runs, comma-separated: engines, placement, room-server, document-service, leaderboard, gateway, y-websocket, hocuspocus, probe. The role engines starts a local nats-server and redis-server where their URLs are empty.",
    basic: true,
  },
  dataDir: {
    parse: text,
    fallback: ".coroom/data",
    meaning: "Folder for the data of nats-server and redis-server if Coroom starts them itself, and for generated secrets.",
    basic: true,
  },
  cacheDir: { parse: text, fallback: ".coroom/cache", meaning: "Folder for downloaded copies of nats-server and redis-server." },
  natsPort: { parse: port, fallback: 0, meaning: "Port of the local nats-server; 0 chooses a free port." },
  redisPort: { parse: port, fallback: 0, meaning: "Port of the local redis-server; 0 chooses a free port." },
  demo: {
    parse: flag,
    fallback: true,
    meaning: "Serve the demo page and issue tokens for it. The page is never served in production or where a token key is set.",
    basic: true,
  },
  operationsPage: {
    parse: flag,
    fallback: true,
    meaning: "Serve the operations console at /operations/. The console needs an operator pass or an administrator token.",
    basic: true,
  },
  healthHost: {
    parse: text,
    fallback: "127.0.0.1",
    meaning: "Address that the health port listens on. Everybody who reaches it can read the metrics.",
  },
  healthPort: { parse: port, fallback: 0, meaning: "Port for /healthz, /readyz and /metrics of this process; 0 disables it.", basic: true },
  idleMemoryMs: {
    parse: wholeNumber,
    fallback: 15_000,
    meaning: "Milliseconds without work after which a process returns unused memory to the operating system; 0 disables this.",
  },
} as const satisfies Settings;

export const startSettings = {
  ...processSettings,
  ...sharedSettings,
  natsUrl: { ...sharedSettings.natsUrl, fallback: "", meaning: "NATS servers, comma-separated. Empty: a local nats-server is started." },
  ...placementSettings,
  ...roomServerSettings,
  ...documentServiceSettings,
  ...leaderboardSettings,
  redisUrl: {
    ...leaderboardSettings.redisUrl,
    fallback: "",
    meaning:
      "Redis for boards, persistent bans and usage by tenant: redis://user:password@host:port/0, rediss:// for TLS, or several nodes of a Redis Cluster, comma-separated. Empty: a local redis-server is started.",
  },
  ...gatewaySettings,
  ...yWebsocketSettings,
  ...probeSettings,
} as const satisfies Settings;

/** The settings of each group. A setting that several roles read appears in each of their groups. */
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
