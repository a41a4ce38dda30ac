/**
 * Parses the address of a PostgreSQL database from the setting. `sslmode` has the names of libpq, but never less
 * protection than its name promises: `require` checks the certificate, and there is no mode that falls back to plain text.
 */

import { SettingError, isDecodable } from "./settings.ts";

export type PostgresAddress = {
  /** An absolute path is the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string | undefined;
  readonly database: string;
  /** Undefined: the connection is not encrypted. */
  readonly tls: PostgresTls | undefined;
};
export type PostgresTls = {
  /** The parts of the server's certificate that are checked. */
  readonly checks: "authority-and-host" | "authority" | "nothing";
  /** Files in PEM. Undefined: the authorities that Node trusts, and no certificate of the client. */
  readonly files: { readonly ca: string | undefined; readonly cert: string | undefined; readonly key: string | undefined };
};

const DEFAULT_PORT = 5432;
const CHECKS = {
  "require": "authority-and-host",
  "verify-full": "authority-and-host",
  "verify-ca": "authority",
  "no-verify": "nothing",
} as const;
const PARAMETERS: ReadonlySet<string> = new Set(["sslmode", "sslrootcert", "sslcert", "sslkey"]);

/** Throws a SettingError that shows no part of the value but the names of parameters. */
export function postgresAddress(text: string): PostgresAddress {
  const url = parsed(text);
  const [user, password, host, database] = [url.username, url.password, url.hostname, url.pathname.slice(1)].map(decodeURIComponent);
  return {
    host: host!.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? DEFAULT_PORT : Number(url.port),
    user: user!,
    password: password === "" ? undefined : password,
    database: database!,
    tls: tlsOf(url.searchParams),
  };
}

/** Parses the setting, and returns it as text. */
export function postgresUrl(raw: string): string {
  postgresAddress(raw);
  return raw;
}

function parsed(text: string): URL {
  if (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text)) {
    const url = new URL(text);
    const parts = [url.username, url.password, url.hostname, url.pathname];
    const isWhole = url.username !== "" && url.hostname !== "" && !url.hostname.includes(",") && /^\/[^/]+$/.test(url.pathname);
    if (isWhole && url.hash === "" && parts.every(isDecodable)) return url;
  }
  throw new SettingError(
    "must be postgres://user:password@host:port/database of one server; password and port are optional. Add ?sslmode=verify-full for TLS. Percent-encode special characters in a password, for example @ as %40",
  );
}

function tlsOf(parameters: URLSearchParams): PostgresTls | undefined {
  for (const name of parameters.keys()) {
    if (!PARAMETERS.has(name))
      throw new SettingError(`must not contain the parameter ${name}: only ${[...PARAMETERS].join(", ")} are known`);
  }
  const mode = parameters.get("sslmode") ?? "disable";
  const fileIn = (name: string): string | undefined => parameters.get(name) ?? undefined;
  const files = { ca: fileIn("sslrootcert"), cert: fileIn("sslcert"), key: fileIn("sslkey") };
  if (mode === "disable") {
    if (Object.values(files).some((file) => file !== undefined))
      throw new SettingError("names certificates, but no TLS: add sslmode=verify-full");
    return undefined;
  }
  if (!Object.hasOwn(CHECKS, mode)) throw new SettingError(`must have one of these as sslmode: disable, ${Object.keys(CHECKS).join(", ")}`);
  if ((files.cert === undefined) !== (files.key === undefined))
    throw new SettingError("must have both sslcert and sslkey, or neither: a certificate needs its private key");
  return { checks: CHECKS[mode as keyof typeof CHECKS], files };
}
