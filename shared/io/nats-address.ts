/**
 * Addresses and credentials of NATS, from the settings. This file removes every secret from the addresses before
 * anything can log them: the result is either an address or a credential, never both.
 */

import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";

import { type Authenticator, type ConnectionOptions, credsAuthenticator } from "nats";

import { isDecodable, SettingError } from "../settings/settings.ts";
import { certificateFiles, textIn } from "./certificate-files.ts";

/** The settings with these names. Absent and empty are the same. */
export type NatsSettings = {
  readonly natsUrl: string;
  readonly natsCredentials?: string;
  readonly natsCa?: string;
  readonly natsCert?: string;
  readonly natsKey?: string;
};

type NatsAddress = {
  /** Addresses without secrets: for the client, logs and messages. */
  readonly servers: readonly string[];
  readonly options: Pick<ConnectionOptions, "user" | "pass" | "token" | "authenticator" | "tls">;
};

/** Throws a SettingError if the settings contradict each other or a file is unusable. No error contains a secret. */
export function natsAddress({ natsUrl, natsCredentials = "", natsCa = "", natsCert = "", natsKey = "" }: NatsSettings): NatsAddress {
  const urls = natsUrl.split(",").map((url) => parsed(url.trim()));
  const users = urls.filter(({ username }) => username !== "");
  const [user] = users;
  if (users.some(({ username, password }) => username !== user!.username || password !== user!.password)) {
    throw new SettingError("COROOM_NATS_URL names several users: use the same user for all servers");
  }
  if (user !== undefined && natsCredentials !== "") {
    throw new SettingError("COROOM_NATS_URL and COROOM_NATS_CREDENTIALS both name a user: set one of them");
  }
  const servers = urls.map(({ protocol, host }) => `${protocol}//${host}`);
  // The client reads them again for each connection.
  const shown = certificateFiles({ certFile: natsCert, keyFile: natsKey }, ["COROOM_NATS_CERT", "COROOM_NATS_KEY"]);
  const authority = natsCa === "" ? {} : { ca: textIn("COROOM_NATS_CA", natsCa) };
  const hosts = urls.map(({ hostname }) => hostname.replace(/^\[|\]$/g, ""));
  const identity = hosts.some(isAddress) ? { checkServerIdentity: identityOf(hosts) } : {};
  const isTls = natsCa !== "" || shown !== undefined || urls.some(({ protocol }) => protocol === "tls:");
  return {
    servers,
    options: {
      ...(user === undefined ? {} : userOf(user)),
      ...(natsCredentials === "" ? {} : { authenticator: credentialsIn(natsCredentials) }),
      ...(isTls ? { tls: { ...authority, ...shown, ...identity } } : {}),
    },
  };
}

function isAddress(host: string): boolean {
  return isIP(host) !== 0;
}

/**
 * The client gives Node no name for a server with an IP address, and Node then checks the certificate for "localhost".
 * Such a server must have a certificate for one of the configured IP addresses.
 */
function identityOf(hosts: readonly string[]): (name: string, certificate: PeerCertificate) => Error | undefined {
  return (name, certificate) => {
    const fitting = name === "localhost" ? hosts.filter((host) => host === name || isAddress(host)) : [name];
    const errors = fitting.map((host) => checkServerIdentity(host, certificate));
    return errors.includes(undefined) ? undefined : errors[0];
  };
}

/** The address without its secret. */
export function withoutSecrets(natsUrl: string): string {
  return natsAddress({ natsUrl }).servers.join(",");
}

/** The error names no address, because the address may contain a password. */
function parsed(url: string): URL {
  const full = url.includes("://") ? url : `nats://${url}`;
  if (/^(?:nats|tls):/.test(full) && URL.canParse(full)) {
    const address = new URL(full);
    if (address.hostname !== "" && [address.username, address.password].every(isDecodable)) return address;
  }
  throw new SettingError(
    "COROOM_NATS_URL is no address: it is nats://host:port or tls://host:port, with a user nats://user:password@host:port. Separate several servers by commas. Percent-encode special characters in a password, for example @ as %40",
  );
}

/** A single text before the @ is a token, as in other NATS clients. */
function userOf({ username, password }: URL): NatsAddress["options"] {
  const user = decodeURIComponent(username);
  return password === "" ? { token: user } : { user, pass: decodeURIComponent(password) };
}

/**
 * Signs each connection with the file's current content, because an expiring JWT is replaced there. While the file is
 * incomplete, the last readable content is used: the client would stop permanently if it could not sign.
 */
function credentialsIn(file: string): Authenticator {
  let usable = credsAuthenticator(Buffer.from(textIn("COROOM_NATS_CREDENTIALS", file)));
  try {
    usable("to be signed");
  } catch {
    throw new SettingError(
      `COROOM_NATS_CREDENTIALS=${file} contains no credentials: name a .creds file, such as nsc generate creds writes`,
    ); // The cause is omitted because it would quote the file.
  }
  return (nonce) => {
    try {
      const newest = credsAuthenticator(readFileSync(file));
      const signed = newest(nonce);
      usable = newest;
      return signed;
    } catch {
      return usable(nonce); // The file is missing or half written: the next connection reads it again.
    }
  };
}
