/** The settings of every command except `coroom start`. Values that belong to one call can only be flags. */

import {
  flag,
  oneOf,
  positiveInteger,
  SettingError,
  type Settings,
  text,
  type Values,
  single,
  wholeNumber,
  list,
} from "../shared/settings/settings.ts";
import { storeSettings, threadSettings } from "../document-service/config.ts";
import { flagsOnly } from "./command.ts";
import { startSettings } from "./settings.ts";

const gateway = {
  url: {
    parse: gatewayAddress,
    fallback: "",
    meaning: "URL of any gateway. Commands reach all gateways. Empty: that of the local system, or http://127.0.0.1:8080.",
  },
  token: { parse: text, secret: true, fallback: "", meaning: "Token with the right admin. Empty: the operator secret is used." },
  operatorSecret: {
    ...startSettings.operatorSecret,
    meaning: "Operator secret (COROOM_OPERATOR_SECRET). Empty: the secret of the local system.",
  },
  dataDir: startSettings.dataDir,
} as const satisfies Settings;
/** For commands that no token may use, whatever its rights. */
const operatorsGateway = {
  ...gateway,
  token: { ...gateway.token, meaning: "Operator pass (coroom ops pass). Empty: the operator secret is used." },
} as const satisfies Settings;
const whose = { tenant: { parse: text, fallback: "default", meaning: "Tenant." } } as const satisfies Settings;
const who = {
  user: { parse: text, fallback: "", meaning: "Id of the user." },
  room: { parse: text, fallback: "", meaning: "Room id. Empty: all rooms." },
  ...whose,
} as const satisfies Settings;
const address = { parse: text, fallback: "", meaning: "IP address to ban, instead of a user. It is banned from all rooms." } as const;
const reason = { parse: text, fallback: "", meaning: "Reason that the user sees." } as const;
const howLong = {
  parse: sanctionDuration,
  fallback: 900,
  shownAs: "15m",
  meaning: "Duration, for example 90s, 15m, 1h, 7d; at most 366d.",
} as const;

/** The settings of each command that calls a gateway. */
export const adminSettings = {
  "kick": {
    ...flagsOnly({
      ...who,
      connection: { parse: text, fallback: "", meaning: "Connection id from the WELCOME frame, instead of a user." },
    }),
    ...gateway,
  },
  "downgrade": { ...flagsOnly({ ...who, user: { parse: text, meaning: "Id of the user." }, for: howLong, reason }), ...gateway },
  "ban": { ...flagsOnly({ ...who, address, for: howLong, reason }), ...gateway },
  "unban": {
    ...flagsOnly({
      user: who.user,
      room: { parse: text, fallback: "", meaning: "Room of the sanction. Empty: a sanction in all rooms." },
      ...whose,
      address: { parse: text, fallback: "", meaning: "Banned IP address, instead of a user." },
      level: { parse: oneOf("banned", "read-only"), fallback: "banned", meaning: "Sanction to lift: banned or read-only." },
    }),
    ...gateway,
  },
  "bans": gateway,
  "members": { ...flagsOnly({ room: { parse: text, meaning: "Room id." }, ...whose }), ...gateway },
  "delete-room": { ...flagsOnly({ room: { parse: text, meaning: "Room id. The room is deleted permanently." }, ...whose }), ...gateway },
  "rooms": {
    ...flagsOnly({
      ...whose,
      prefix: { parse: text, fallback: "", meaning: "Beginning of the room ids. Empty: all rooms." },
      after: { parse: text, fallback: "", meaning: "`next` of the page before. Empty: the first page." },
      limit: { parse: positiveInteger, fallback: 100, meaning: "Maximum number of rooms in the page, at most 1000." },
    }),
    ...gateway,
  },
  "drain": {
    ...flagsOnly({ drainMs: { parse: positiveInteger, fallback: 60_000, meaning: "Milliseconds to wait until all clients have moved." } }),
    ...operatorsGateway,
    url: { ...gateway.url, meaning: "URL of the gateway to drain. Empty: that of the local system, or http://127.0.0.1:8080." },
  },
} as const satisfies Record<string, Settings>;

export const opsRoomsSettings = {
  ...flagsOnly({
    tenant: { parse: text, fallback: "", meaning: "Tenant. Empty: all tenants, or the token's tenant." },
    search: { parse: text, fallback: "", meaning: "Text that the room id must contain." },
    limit: { parse: positiveInteger, fallback: 100, meaning: "Maximum number of rooms, those with most participants first." },
  }),
  ...gateway,
} as const satisfies Settings;
export const opsGatewaysSettings = operatorsGateway;
export const opsProcessesSettings = operatorsGateway;
export const usageSettings = {
  ...flagsOnly({
    tenant: { parse: text, fallback: "", meaning: "Tenant. Empty: all tenants, or the token's tenant." },
    from: { parse: text, fallback: "", meaning: "First day in UTC, for example 2026-11-01. Empty: 30 days before the last day." },
    to: { parse: text, fallback: "", meaning: "Last day in UTC. Empty: today. At most 100 days." },
    csv: { parse: flag, fallback: false, meaning: "Print CSV instead of a table." },
  }),
  ...gateway,
} as const satisfies Settings;

export type AdminCommandName = keyof typeof adminSettings;
export type GatewayAccess = Values<typeof gateway>;

export function gatewayAddress(raw: string): string {
  const url = URL.canParse(raw) ? new URL(raw) : undefined;
  if (url !== undefined && ["ws:", "wss:"].includes(url.protocol))
    throw new SettingError(
      `is a WebSocket address: set the HTTP address of the same gateway, such as http${url.protocol.slice(2, -1)}://${url.host}`,
    );
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw new SettingError("must be an address with http:// or https://, such as http://gateway-3:8080");
  if (url.username !== "" || url.password !== "")
    throw new SettingError(`must contain no user or password: use --token or --operator-secret, and an address such as ${url.origin}`);
  if (url.href !== `${url.origin}/`)
    throw new SettingError(`must be an address without a path: set the gateway's scheme, host and port, such as ${url.origin}`);
  return raw;
}

const { natsCredentials, natsCa, natsCert, natsKey, dataDir, environment, logReplicas, logPartitions } = startSettings;

/** The settings of `coroom start` that locate the system. */
export const whereSettings = {
  natsUrl: { ...startSettings.natsUrl, meaning: "NATS servers, comma-separated. Empty: the server of the local system." },
  natsCredentials,
  natsCa,
  natsCert,
  natsKey,
  dataDir,
  environment,
} as const satisfies Settings;

const whichRoom = flagsOnly({
  room: { parse: text, meaning: "Room id." },
  tenant: { parse: text, fallback: "default", meaning: "Tenant of the room." },
});
const serverId = { parse: text, meaning: "Id of the room server, as shown by coroom ops servers." } as const;
const placedRoom = { ...whichRoom, ...whereSettings } as const satisfies Settings;

export const opsWatchSettings = {
  ...flagsOnly({ last: { parse: wholeNumber, fallback: 20, meaning: "Number of past events to show first." } }),
  ...whereSettings,
} as const satisfies Settings;
export const opsRoomSettings = placedRoom;
export const opsServersSettings = whereSettings;
export const opsExplainSettings = placedRoom;
export const opsMoveSettings = { ...flagsOnly({ to: serverId }), ...placedRoom } as const satisfies Settings;
export const opsDrainSettings = { ...flagsOnly({ server: serverId }), ...whereSettings } as const satisfies Settings;
export const opsPinSettings = {
  ...flagsOnly({
    pool: { parse: text, fallback: "", meaning: "Pool of servers (COROOM_SERVER_POOL) that may own the room." },
    onHost: { parse: text, fallback: "", meaning: "Host (COROOM_SERVER_HOST) whose servers may own the room." },
  }),
  ...placedRoom,
  logReplicas,
} as const satisfies Settings;
export const opsPassSettings = {
  ...flagsOnly({
    ttl: { parse: duration, fallback: 8 * 3_600, shownAs: "8h", meaning: "Lifetime of the pass, for example 15m or 8h; at most 7d." },
  }),
  operatorSecret: gateway.operatorSecret,
  dataDir,
} as const satisfies Settings;
export const opsLeftOutSettings = whereSettings;
export const opsStepDownSettings = {
  ...flagsOnly({
    server: { parse: text, meaning: "Name (server_name) of the nats-server." },
    waitMsMax: { parse: wholeNumber, fallback: 60_000, meaning: "Milliseconds to wait for lagging stream replicas and for new leaders." },
  }),
  ...whereSettings,
} as const satisfies Settings;

export const natsUsersSettings = { environment, logPartitions } as const satisfies Settings;
export const redisUsersSettings = { environment } as const satisfies Settings;

export const restoreSettings = {
  ...whereSettings,
  logPartitions,
  logReplicas,
  ...storeSettings,
  ...threadSettings,
} as const satisfies Settings;

export const splitLogSettings = {
  ...whereSettings,
  logPartitions: { ...logPartitions, meaning: "Number of partitions after the split: a multiple of the present number." },
} as const satisfies Settings;

const claims = flagsOnly({
  room: { parse: list, meaning: "Rooms that the token gives access to, comma-separated. A trailing * matches any rest of a name." },
  user: { parse: text, meaning: "Id of the user." },
  name: { parse: text, fallback: "", meaning: "Display name. Default: the user's id." },
  rights: {
    parse: rights,
    fallback: ["read", "write"],
    meaning:
      "Rights, comma-separated: read, write, admin, award, boards. The right award lets a backend report activities that earn points. The right boards lets a member read the boards of the whole tenant.",
  },
  tenant: { parse: text, fallback: "default", meaning: "Tenant of the rooms." },
  ttl: { parse: duration, fallback: 3600, shownAs: "1h", meaning: "Lifetime of the token, for example 90s, 15m, 1h, 7d." },
});

export type TokenClaims = Values<typeof claims>;

export const tokenSettings = {
  ...claims,
  dataDir: startSettings.dataDir,
  jwtSecret: {
    ...startSettings.jwtSecret,
    meaning: "HS256 secret of the tokens, at least 32 bytes. Empty: the secret of the local system.",
  },
} as const satisfies Settings;

export const documentSettings = {
  ...flagsOnly({
    token: { parse: text, fallback: "", meaning: "Token with access to the rooms. Default: one signed with the secret.", secret: true },
    tenant: { parse: text, fallback: "default", meaning: "Tenant of the rooms." },
  }),
  url: gateway.url,
  dataDir: startSettings.dataDir,
  jwtSecret: tokenSettings.jwtSecret,
} as const satisfies Settings;

export const mcpSettings = {
  ...documentSettings,
  ...flagsOnly({
    user: { parse: text, fallback: "agent", meaning: "User id of the tokens that the command signs." },
    name: { parse: text, fallback: "Agent", meaning: "Name of this user." },
  }),
} as const satisfies Settings;

export const importSettings = {
  ...documentSettings,
  ...flagsOnly({
    from: {
      parse: text,
      meaning:
        "Folder of files with Yjs updates, SQLite database of Hocuspocus, or LevelDB folder of y-websocket. Its server must not run.",
    },
    prefix: { parse: text, fallback: "", meaning: "Text before the name of each document, for example team/." },
  }),
} as const satisfies Settings;

export const exportSettings = {
  ...documentSettings,
  ...flagsOnly({
    room: { parse: single, isRepeatable: true, meaning: "Room. Repeat the flag for further rooms." },
    to: { parse: text, fallback: ".", meaning: "Folder of the files." },
    format: {
      parse: oneOf("yjs", "prosemirror", "html", "markdown"),
      fallback: "yjs",
      meaning: "Format of the files: yjs, which coroom import reads, or prosemirror (JSON), html or markdown of the rich text.",
    },
    type: { parse: text, fallback: "", meaning: "Shared type to convert and its kind, for example default:xml or body:text." },
  }),
} as const satisfies Settings;

const RIGHTS = ["read", "write", "admin", "award", "boards"];

function rights(raw: string): readonly string[] {
  const named = list(raw);
  if (named.length === 0 || named.some((right) => !RIGHTS.includes(right))) throw new SettingError(`must be out of ${RIGHTS.join(", ")}`);
  return named;
}

/** Returns seconds. */
function duration(raw: string): number {
  const match = /^(\d+)([smhd])$/.exec(raw);
  if (match === null) throw new SettingError("must be a number and a unit: 90s, 15m, 1h, 7d");
  return positiveInteger(match[1]!) * { s: 1, m: 60, h: 3600, d: 86_400 }[match[2] as "s" | "m" | "h" | "d"];
}

/** The gateway refuses a longer sanction. */
const SANCTION_DAYS_MAX = 366;

function sanctionDuration(raw: string): number {
  const seconds = duration(raw);
  if (seconds > SANCTION_DAYS_MAX * 86_400) throw new SettingError(`must be at most ${SANCTION_DAYS_MAX}d`);
  return seconds;
}

/** The defaults are the load that Coroom is designed for (docs/CAPACITY.md). */
export const capacitySettings = flagsOnly({
  rooms: { parse: positiveInteger, fallback: 100_000, meaning: "Number of rooms that people are in at the same time." },
  medianParticipants: { parse: positiveInteger, fallback: 4, meaning: "Participants of the median room." },
  p95Participants: { parse: positiveInteger, fallback: 30, meaning: "Participants that 95% of the rooms do not exceed." },
  largeRooms: { parse: wholeNumber, fallback: 100, meaning: "Number of rooms of 1,000 participants, besides the others." },
  storedRooms: {
    parse: wholeNumber,
    fallback: 0,
    meaning: "Number of documents that exist, open ones included. 0: ten for each room that people are in.",
  },
  edits: { parse: positiveInteger, fallback: 50_000, meaning: "Edits per second of all rooms." },
  cursors: { parse: wholeNumber, fallback: 5_000_000, meaning: "Cursor moves and other presence updates per second of all rooms." },
  editBytes: { parse: positiveInteger, fallback: 60, meaning: "Bytes of an average edit." },
  routingKey: {
    parse: flag,
    fallback: true,
    meaning: "Whether the balancer hashes the URL parameter `route`, so that members of a room meet on one gateway.",
  },
  replicas: { parse: oneOf("1", "3", "5"), fallback: "3", meaning: "Copies of the log: 1, 3 or 5." },
  sync: { parse: flag, fallback: true, meaning: "Whether nats-server syncs to disk before it acknowledges." },
  zones: { parse: positiveInteger, fallback: 3, meaning: "Zones, one of which may be lost. 1: no spare processes." },
});
