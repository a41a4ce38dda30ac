import { expect, test } from "vitest";

import { postgresAddress } from "./postgres-address.ts";
import { SettingError } from "./settings.ts";

const NO_FILES = { ca: undefined, cert: undefined, key: undefined };

test.each<[string, ReturnType<typeof postgresAddress>]>([
  [
    "postgres://ann:p%40ss@db.example/documents",
    { host: "db.example", port: 5432, user: "ann", password: "p@ss", database: "documents", tls: undefined },
  ],
  [
    "postgresql://ann@[::1]:6000/my%20documents?sslmode=disable",
    { host: "::1", port: 6000, user: "ann", password: undefined, database: "my documents", tls: undefined },
  ],
  [
    "postgres://ann@%2Frun%2Fpostgresql/documents",
    { host: "/run/postgresql", port: 5432, user: "ann", password: undefined, database: "documents", tls: undefined },
  ],
])("[PGA1] an address has its parts, decoded: %s", (url, address) => {
  expect(postgresAddress(url)).toEqual(address);
});

test.each([
  ["sslmode=require", "authority-and-host", NO_FILES],
  ["sslmode=verify-full&sslrootcert=/ca.pem", "authority-and-host", { ...NO_FILES, ca: "/ca.pem" }],
  ["sslmode=verify-ca&sslcert=/c.pem&sslkey=/k.pem", "authority", { ...NO_FILES, cert: "/c.pem", key: "/k.pem" }],
  ["sslmode=no-verify", "nothing", NO_FILES],
])("[PGA2] a mode of TLS checks at least what its name promises: %s", (parameters, checks, files) => {
  expect(postgresAddress(`postgres://ann@db/documents?${parameters}`).tls).toEqual({ checks, files });
});

test.each([
  ["another scheme", "mysql://ann:hidden@db/documents", "must be postgres://"],
  ["no user", "postgres://db/documents", "must be postgres://"],
  ["no database", "postgres://ann:hidden@db", "must be postgres://"],
  ["two servers", "postgres://ann:hidden@one,two/documents", "of one server"],
  ["an @ in the password", "postgres://ann:hid@den@db:x/documents", "Percent-encode"],
  ["a percent sign in the password", "postgres://ann:hidden%zz@db/documents", "Percent-encode"],
  ["a fragment", "postgres://ann:hidden@db/documents#hidden", "must be postgres://"],
  ["a mode that falls back to plain text", "postgres://ann:hidden@db/documents?sslmode=prefer", "disable, require, verify-full"],
  ["an unknown parameter", "postgres://ann:hidden@db/documents?target=hidden", "the parameter target"],
  ["a certificate without its key", "postgres://ann:hidden@db/documents?sslmode=require&sslcert=/c.pem", "sslkey"],
  ["an authority without TLS", "postgres://ann:hidden@db/documents?sslrootcert=/ca.pem", "add sslmode=verify-full"],
])("[PGA3] an address with %s is refused without its password", (_, url, remedy) => {
  const refusal = (): unknown => {
    try {
      return postgresAddress(url);
    } catch (error) {
      return error;
    }
  };
  const error = refusal() as Error;
  expect(error).toBeInstanceOf(SettingError);
  expect(error.message).toContain(remedy);
  expect(error.message).not.toContain("hid");
});
