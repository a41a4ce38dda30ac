/**
 * Parses addresses and credentials of Redis, from the setting. ioredis would treat an unknown text as the path of a
 * socket, and its errors would contain that text with the password.
 */

import { SettingError, isDecodable } from "./settings.ts";

/** Several nodes mean a Redis Cluster. */
type RedisAddress = {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly options: { readonly username?: string; readonly password?: string; readonly db?: number; readonly tls?: object };
};

const DEFAULT_PORT = 6379;

/** Throws a SettingError that shows no part of the value. */
export function redisAddress(urls: string): RedisAddress {
  const all = urls.split(",").map((url) => parsed(url.trim()));
  const [first] = all;
  const isSame = (part: "protocol" | "username" | "password"): boolean => all.every((url) => url[part] === first![part]);
  if (!(["protocol", "username", "password"] as const).every(isSame)) {
    throw new SettingError("must have the same user and the same scheme (redis:// or rediss://) for all nodes of a Redis Cluster");
  }
  const db = databaseOf(first!);
  if (all.length > 1 && all.some((url) => databaseOf(url) > 0)) {
    throw new SettingError("must not contain a database number with several nodes: a Redis Cluster has only one database");
  }
  const { username, password, protocol } = first!;
  return {
    nodes: all.map(({ hostname, port }) => ({ host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? DEFAULT_PORT : Number(port) })),
    options: {
      ...(username === "" ? {} : { username: decodeURIComponent(username) }),
      ...(password === "" ? {} : { password: decodeURIComponent(password) }),
      ...(db === 0 ? {} : { db }),
      ...(protocol === "rediss:" ? { tls: {} } : {}),
    },
  };
}

/** Parses the setting, and returns it as text. */
export function redisUrls(raw: string): string {
  redisAddress(raw);
  return raw;
}

function parsed(url: string): URL {
  const full = url.includes("://") ? url : `redis://${url}`;
  if (/^rediss?:/.test(full) && URL.canParse(full)) {
    const address = new URL(full);
    const isWhole = address.hostname !== "" && address.search === "" && address.hash === "" && /^(?:\/\d*)?$/.test(address.pathname);
    if (isWhole && [address.username, address.password].every(isDecodable)) return address;
  }
  throw new SettingError(
    "must be redis://user:password@host:port/database, or rediss:// for TLS; user, password and database are optional. Separate the nodes of a Redis Cluster by commas. Percent-encode special characters in a password, for example @ as %40",
  );
}

function databaseOf({ pathname }: URL): number {
  return Number(pathname.slice(1));
}
