/**
 * Connects to the PostgreSQL database that stores objects, and creates their table. No message contains the password:
 * errors name the server, the user and the database only.
 */

import { readFileSync } from "node:fs";

import pg from "pg";

import { isErrno } from "../../shared/io/system-error.ts";
import { StartError } from "../../shared/process/lifecycle.ts";
import { postgresAddress, type PostgresAddress, type PostgresTls } from "../../shared/settings/postgres-address.ts";

export type PostgresConnection = {
  /** Rows as arrays of their columns. Throws an error that begins with `what` if the database does not answer, or refuses. */
  ask(what: string, statement: string, values: readonly unknown[]): Promise<readonly (readonly unknown[])[]>;
};

/** Four snapshots are written at once (`documentSavesMax`), and as many objects are read meanwhile. */
const CONNECTIONS_MAX = 8;
const CONNECT_MS_MAX = 10_000;
/** A check reports a database that does not answer within seconds. */
const CHECK_MS_MAX = 3_000;
/** Maximum time of one statement, which transfers at most one object. */
const STATEMENT_MS_MAX = 60_000;

/**
 * Parts of objects are read without the rest (`postgresObjects`), which PostgreSQL can do only if it does not compress
 * them. The order of names must not depend on the language of the database.
 */
const CREATE_TABLE = `CREATE TABLE coroom_objects (bucket text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (bucket, name));
ALTER TABLE coroom_objects ALTER COLUMN bytes SET STORAGE EXTERNAL;`;
/** Of services that start at once, one creates the table. The others wait for it, and receive one of these errors. */
const CREATE_TABLE_ONCE = `DO $$ BEGIN ${CREATE_TABLE}
EXCEPTION WHEN duplicate_table OR duplicate_object OR unique_violation THEN NULL;
END $$`;
const PRIVILEGES = ["SELECT", "INSERT", "UPDATE", "DELETE"] as const;

/** Numbers of statements that have a connection, and that wait for one. */
export type PostgresUse = { readonly running: number; readonly waiting: number };

/** Throws a StartError if the database cannot be used. `receiveUse` is called whenever a statement begins or ends. */
export async function connectPostgres(url: string, receiveUse: (use: PostgresUse) => void = () => {}): Promise<PostgresConnection> {
  const address = postgresAddress(url);
  const where = whereOf(address);
  const pool = poolOf(address, { max: CONNECTIONS_MAX, connectionTimeoutMillis: CONNECT_MS_MAX, query_timeout: STATEMENT_MS_MAX });
  let busy = 0;
  pool.on("acquire", () => (busy += 1));
  pool.on("release", () => (busy -= 1)); // Before the statement's failure is thrown, so its own connection does not count.
  const use = { running: 0, waiting: 0 };
  const count = (statements: number): void => {
    const all = use.running + use.waiting + statements;
    use.running = Math.min(all, CONNECTIONS_MAX);
    use.waiting = all - use.running;
    receiveUse(use);
  };
  const ask: PostgresConnection["ask"] = async (what, text, values) => {
    count(1);
    try {
      return (await pool.query<unknown[]>({ text, values: [...values], rowMode: "array" }).finally(() => count(-1))).rows;
    } catch (cause) {
      if (cause instanceof pg.DatabaseError && !isAway(cause))
        throw new Error(`${what} failed: PostgreSQL at ${where} ${refusalAdvice(cause, address)}`, { cause });
      const advice =
        busy === CONNECTIONS_MAX
          ? `none of the ${CONNECTIONS_MAX} connections to PostgreSQL at ${where} was free for ${CONNECT_MS_MAX / 1_000} s. Find the statements that run so long (pg_stat_activity), and what slows them`
          : `check that PostgreSQL at ${where} is reachable`;
      throw new Error(`${what} failed: ${advice}`, { cause });
    }
  };
  try {
    if (!(await hasUsableTable(pool, address))) {
      await pool.query(CREATE_TABLE_ONCE);
      if (!(await hasUsableTable(pool, address))) throw notGranted(address);
    }
  } catch (cause) {
    await pool.end();
    throw startError(cause, address);
  }
  return { ask };
}

/**
 * Examines the database over a connection of its own, and changes nothing. Throws a StartError if the database cannot be
 * used. `hasTable`: false in a new database.
 */
export async function checkPostgres(url: string): Promise<{ readonly where: string; readonly hasTable: boolean }> {
  const address = postgresAddress(url);
  const pool = poolOf(address, { max: 1, connectionTimeoutMillis: CHECK_MS_MAX, query_timeout: CHECK_MS_MAX });
  try {
    return { where: whereOf(address), hasTable: await hasUsableTable(pool, address) };
  } catch (cause) {
    throw startError(cause, address);
  } finally {
    await pool.end();
  }
}

function poolOf(address: PostgresAddress, limits: pg.PoolConfig): pg.Pool {
  const { host, port, user, password, database, tls } = address;
  const pool = new pg.Pool({
    host,
    port,
    user,
    password,
    database,
    ssl: tls === undefined ? false : tlsOptions(tls),
    keepAlive: true,
    allowExitOnIdle: true,
    application_name: "coroom",
    ...limits,
  });
  pool.on("error", () => {}); // An idle connection was lost. The next statement connects again, and reports a failure.
  return pool;
}

const whereOf = ({ host, port, database }: PostgresAddress): string => `${host}:${port}/${database}`;

function startError(cause: unknown, address: PostgresAddress): StartError {
  return cause instanceof StartError
    ? cause
    : new StartError(`the PostgreSQL server at ${whereOf(address)} ${startAdvice(cause, address)}`, { cause });
}

/** Throws a StartError for a database that cannot be written. False: the table is missing. */
async function hasUsableTable(pool: pg.Pool, address: PostgresAddress): Promise<boolean> {
  const granted = PRIVILEGES.map((privilege) => `has_table_privilege(to_regclass('coroom_objects'), '${privilege}')`).join(" AND ");
  const found = await pool.query<[exists: boolean, isGranted: boolean | null, isStandby: boolean]>({
    text: `SELECT to_regclass('coroom_objects') IS NOT NULL, ${granted}, pg_is_in_recovery()`,
    rowMode: "array",
  });
  const [exists, isGranted, isStandby] = found.rows[0]!;
  if (isStandby)
    throw new StartError(
      `the PostgreSQL server at ${whereOf(address)} is a standby, which cannot be written: set COROOM_POSTGRES_URL to the primary`,
    );
  if (exists && isGranted !== true) throw notGranted(address);
  return exists;
}

function notGranted(address: PostgresAddress): StartError {
  const { user } = address;
  return new StartError(
    `the user ${user} may not use the table coroom_objects at ${whereOf(address)}. Run there, as its owner: GRANT ${PRIVILEGES.join(", ")} ON coroom_objects TO "${user}"`,
  );
}

/**
 * Codes of a server that stops, restarts or recovers, with which it ends connections and refuses new ones:
 * https://www.postgresql.org/docs/current/errcodes-appendix.html, class 57.
 */
const AWAY: readonly string[] = ["57P01", "57P02", "57P03"];
const isAway = (cause: unknown): boolean => AWAY.includes(codeOf(cause));

/** Codes of the same list, at the start and later. */
function refusalAdvice(cause: pg.DatabaseError, { user, database }: PostgresAddress): string {
  const { code = "" } = cause;
  switch (code) {
    case "25006":
      return `cannot be written (${cause.message}): set COROOM_POSTGRES_URL to the primary, or promote this server`;
    case "28P01":
      return `refuses the password of the user ${user}: correct it in COROOM_POSTGRES_URL`;
    case "28000":
      return `does not admit the user ${user} to the database ${database} (${cause.message}). Create the user, or allow it in pg_hba.conf; if the server demands TLS, add ?sslmode=verify-full to COROOM_POSTGRES_URL`;
    case "3D000":
      return `has no database ${database}. Create it (CREATE DATABASE "${database}" OWNER "${user}"), or set COROOM_POSTGRES_URL to another one`;
    case "42501":
      return `does not let the user ${user} use the table coroom_objects (${cause.message}). Run as its owner: GRANT ${PRIVILEGES.join(", ")} ON coroom_objects TO "${user}"`;
    case "42P01":
      return `has no table coroom_objects (${cause.message}). Restore it from a backup; a restart creates an empty one`;
    case "53100":
      return `has a full disk (${cause.message}): free or add space`;
    case "53300":
      return `has no free connection (${cause.message}). Each document service uses up to ${CONNECTIONS_MAX + 1}: raise max_connections of the server, or CONNECTION LIMIT of the role or the database, whichever the message names`;
  }
  return `refuses with ${code} (${cause.message}). Repair the cause in PostgreSQL`;
}

function startAdvice(cause: unknown, address: PostgresAddress): string {
  const { user, password, tls } = address;
  const code = codeOf(cause);
  if (code === "42501" || code === "3F000")
    return `does not let the user ${user} create the table coroom_objects (${messageOf(cause)}). Run as the owner of the database: GRANT USAGE, CREATE ON SCHEMA public TO "${user}". If search_path of "${user}" begins with another schema, create it and name it there`;
  if (isAway(cause)) return `is starting or stopping (${messageOf(cause)}): start Coroom again when it accepts connections`;
  if (cause instanceof pg.DatabaseError) return refusalAdvice(cause, address);
  if (tls !== undefined && isErrno(cause, ...UNTRUSTED))
    return `has a certificate that is not trusted (${code}). Add &sslrootcert=FILE with its authority to COROOM_POSTGRES_URL, and use a host that the certificate contains`;
  return `does not answer${tls === undefined ? "" : " over TLS"} (${messageOf(cause)}): start it${tls === undefined ? "" : " with ssl = on"}, or set COROOM_POSTGRES_URL to one that runs${password === undefined ? ". If it asks for a password, write it into COROOM_POSTGRES_URL" : ""}`;
}

const UNTRUSTED = [
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
];

/** The message of a connection that was refused at several addresses is empty. */
function messageOf(cause: unknown): string {
  return cause instanceof Error && cause.message !== "" ? cause.message : codeOf(cause);
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}

function tlsOptions({ checks, files }: PostgresTls) {
  return {
    rejectUnauthorized: checks !== "nothing",
    ...(checks === "authority-and-host" ? {} : { checkServerIdentity: () => undefined }),
    ca: textOf(files.ca, "sslrootcert"),
    cert: textOf(files.cert, "sslcert"),
    key: textOf(files.key, "sslkey"),
  };
}

function textOf(file: string | undefined, parameter: string): string | undefined {
  try {
    return file === undefined ? undefined : readFileSync(file, "utf8");
  } catch (cause) {
    throw new StartError(`the file ${file} of ${parameter} in COROOM_POSTGRES_URL cannot be read: correct its path, or make it readable`, {
      cause,
    });
  }
}
