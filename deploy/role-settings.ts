/** The settings that each role reads in its `main.ts`: its own, the common ones, and some of other roles. */

import { envName, readableSettings, readSettings, type Setting, type Settings, type Values } from "../shared/settings/settings.ts";
import { missingSecrets } from "../cli/secrets.ts";
import { ROLES, type Role, startGroups, startSettings } from "../cli/settings.ts";
import { refuseUnfit } from "../cli/start-checks.ts";
import { SETTLE_MS_MAX } from "../gateway/settings/listening.ts";

export type Environment = Readonly<Record<string, string>>;

/** Roles that run in containers of their own. Hocuspocus clients share process and port with y-websocket clients. */
export const DEPLOYED_ROLES: readonly Role[] = ROLES.filter((role) => role !== "engines" && role !== "hocuspocus");

const EDGE = ["production", "allowedOrigins", "clientAddressHeader"] as const;
const TOKENS = ["jwtSecret", "jwtIssuer", "jwtAudience"] as const;
const BOARDS = ["redisUrl", "boardKinds", "boardSessionMs", "boardSessionPoints"] as const;
const OF_OTHERS: Readonly<Partial<Record<Role, readonly (keyof typeof startSettings)[]>>> = {
  "gateway": [...BOARDS, "serverSilenceMsMax"],
  "y-websocket": EDGE,
  "probe": TOKENS,
};

/** The role's settings, by the names of their environment variables. */
export function settingsOf(role: Role): ReadonlyMap<string, Setting<unknown>> {
  const others = (OF_OTHERS[role] ?? []).map((name) => [name, startSettings[name]] as const);
  const own = ["this process", "every role", role].flatMap((group) => readableSettings(startGroups[group]!));
  return new Map([...own, ...others].map(([name, setting]) => [envName(name), setting]));
}

export function secretVariables(): readonly string[] {
  return Object.entries<Setting<unknown>>(startSettings satisfies Settings)
    .filter(([, setting]) => setting.secret === true)
    .map(([name]) => envName(name));
}

/** Throws a SettingError if the role refuses to start with this environment. */
export async function configOf(role: Role, env: Environment): Promise<Values<typeof startSettings>> {
  const config = readSettings(startSettings, { flags: { roles: role }, env });
  await refuseUnfit({ ...config, ...missingSecrets(config) });
  return config;
}

/** Maximum time that a role may take after SIGTERM, from its settings plus its fixed steps. */
export function drainMsOf(role: Role, config: Values<typeof startSettings>): number {
  const drains: Readonly<Partial<Record<Role, number>>> = {
    "gateway": config.drainMsMax + SETTLE_MS_MAX, // The gateway drains, and then waits for unconfirmed edits.
    "room-server": config.handOverMsMax + config.releaseMsMax,
    "document-service": config.documentsDrainMsMax,
    "leaderboard": config.boardsDrainMsMax,
    "y-websocket": config.ySaveMsMax,
  };
  return drains[role] ?? 0;
}

/** The role's HTTP or WebSocket port, besides its health port. */
export function portOf(role: Role, config: Values<typeof startSettings>): number | undefined {
  const ports: Readonly<Partial<Record<Role, number>>> = {
    "gateway": config.port,
    "document-service": config.documentsPort,
    "leaderboard": config.boardsPort,
    "y-websocket": config.yPort,
  };
  return ports[role];
}
