/**
 * Prints the users and variables of a deployment in which each role has its own user of NATS and Redis: the users with
 * their permissions, and a file of variables with a new value for each secret and password.
 */

import { randomBytes } from "node:crypto";

import { NATS_ROLES } from "../shared/bus/permissions.ts";
import { REDIS_ROLES } from "../shared/settings/redis-permissions.ts";
import { envName, type Values } from "../shared/settings/settings.ts";
import { natsUserLines } from "../engines/nats-config.ts";
import { REDIS_DEFAULT_USER, redisUserLine } from "../engines/redis-server.ts";
import type { natsUsersSettings, redisUsersSettings } from "./command-settings.ts";
import { natsUsers } from "./local-engines.ts";
import { SECRETS } from "./secrets.ts";

/** For `include` in nats-server's configuration. The server reads the passwords from its environment. */
export function natsUsersText(config: Values<typeof natsUsersSettings>): string {
  const users = natsUsers(config, (role) => ({ fromEnvironment: passwordName("NATS", role) }));
  return [
    `# Users of the environment "${config.environment}" with ${config.logPartitions} partitions of the log. Made by: coroom nats-users`,
    ...natsUserLines(users),
  ].join("\n");
}

/** For an ACL file of Redis, after envsubst. */
export function redisUsersText({ environment }: Values<typeof redisUsersSettings>): string {
  return [REDIS_DEFAULT_USER, ...REDIS_ROLES.map((role) => redisUserLine(role, environment, `>$${passwordName("REDIS", role)}`))].join(
    "\n",
  );
}

/** nats-server reads a value that begins with a digit as a number, so each begins with a letter. */
export function newSecretsText(): string {
  const names = [
    ...SECRETS.map(envName),
    ...NATS_ROLES.map((role) => passwordName("NATS", role)),
    ...REDIS_ROLES.map((role) => passwordName("REDIS", role)),
  ];
  return names.map((name) => `${name}=s${randomBytes(24).toString("hex")}`).join("\n");
}

function passwordName(engine: "NATS" | "REDIS", role: string): string {
  return `${engine}_${role.replaceAll("-", "_").toUpperCase()}_PASSWORD`;
}
