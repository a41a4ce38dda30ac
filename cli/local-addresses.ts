/** Stores the addresses of the local system in the data folder, for commands in other terminals. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { withoutSecrets } from "../shared/io/nats-address.ts";
import { isErrno } from "../shared/io/system-error.ts";
import { SettingError } from "../shared/settings/settings.ts";
import { startedRoleSecrets } from "./secrets.ts";

export const DEFAULT_NATS_URL = "nats://127.0.0.1:4222";
const DEFAULT_GATEWAY_URL = "http://127.0.0.1:8080";

const FILES = { nats: "nats-url", redis: "redis-url", gateway: "gateway-url" } as const;

/** Stores the address without its secrets, because more users may read the folder than may use NATS. */
export function rememberAddress(of: keyof typeof FILES, dataDir: string, url: string): void {
  writeFileSync(join(dataDir, FILES[of]), of === "nats" ? withoutSecrets(url) : url.replaceAll(/\/\/[^@/]*@/g, "//"));
}

/** `url`: one address without a user, or several separated by commas. */
export function withUser(url: string, user: string, password: string): string {
  return url.replaceAll("://", `://${encodeURIComponent(user)}:${encodeURIComponent(password)}@`);
}

/** Returns the stored address of the local system with its operator, or NATS's default address. */
export function localNatsUrl(dataDir: string): string {
  const url = remembered("nats", dataDir);
  return url === undefined ? DEFAULT_NATS_URL : withUser(url, "operator", startedRoleSecrets(dataDir, "set COROOM_NATS_URL").nats.operator);
}

/** Undefined: no local system has run in this folder. */
export function localRedisUrl(dataDir: string): string | undefined {
  const url = remembered("redis", dataDir);
  return url === undefined
    ? undefined
    : withUser(url, "leaderboard", startedRoleSecrets(dataDir, "set COROOM_REDIS_URL").redis.leaderboard);
}

export function hasLocalNats(dataDir: string): boolean {
  return remembered("nats", dataDir) !== undefined;
}

export function localGatewayUrl(dataDir: string): string | undefined {
  return remembered("gateway", dataDir);
}

/** The given gateway, that of the local system, or the one at the default port. */
export function gatewayFor({ url, dataDir }: { readonly url: string; readonly dataDir: string }): string {
  return url || (localGatewayUrl(dataDir) ?? DEFAULT_GATEWAY_URL);
}

/** Undefined: no system was started in this folder. */
function remembered(of: keyof typeof FILES, dataDir: string): string | undefined {
  const file = join(dataDir, FILES[of]);
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (isErrno(cause, "ENOENT", "ENOTDIR")) return undefined;
    if (!(cause instanceof Error && "code" in cause)) throw cause;
    throw new SettingError(
      `cannot read ${file} (${String(cause.code)}). Run this command as the user who started the system, or set COROOM_DATA_DIR (--data-dir) to a folder that this user may read`,
      { cause },
    );
  }
}
