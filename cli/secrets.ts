/**
 * The secrets of a local system. They are generated once and stored in the data folder, readable only by the owner. So
 * tokens of `coroom token` work with the system that `npm start` runs, and nothing is open by default. A deployment
 * configures its own secrets. Roles in separate processes must receive the same secrets, because generated ones would
 * differ.
 */

import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { z } from "zod";

import { NATS_ROLES } from "../shared/bus/permissions.ts";
import { makeFolder } from "../shared/io/make-folder.ts";
import { folderAdvice, isErrno } from "../shared/io/system-error.ts";
import { StartError } from "../shared/process/lifecycle.ts";
import { REDIS_ROLES } from "../shared/settings/redis-permissions.ts";
import { SettingError } from "../shared/settings/settings.ts";
import { parseJson } from "../shared/parse-json.ts";
import type { Role, StartConfig } from "./settings.ts";

/** The settings with the secrets of a deployment. */
export const SECRETS = [
  "jwtSecret",
  "roomSecret",
  "internalSecret",
  "operatorSecret",
  "metricsSecret",
] as const satisfies readonly (keyof StartConfig)[];

const Secret = z.string().min(32);
const Secrets = z.object({ jwtSecret: Secret, roomSecret: Secret, internalSecret: Secret });
type Secrets = z.infer<typeof Secrets>;

/** Secrets for some roles only, and passwords of the roles at the local nats-server and redis-server. */
const RoleSecrets = z.object({
  operatorSecret: Secret,
  metricsSecret: Secret,
  nats: z.record(z.enum(NATS_ROLES), Secret),
  redis: z.record(z.enum(REDIS_ROLES), Secret),
});
type RoleSecrets = z.infer<typeof RoleSecrets>;

/** Throws a StartError when the folder is unusable or the file is damaged. */
export function localSecrets(dataDir: string): Secrets {
  return storedIn(dataDir, "secrets.json", Secrets, () => ({ jwtSecret: secret(), roomSecret: secret(), internalSecret: secret() }));
}

/** The same for secrets of single roles and persons. They are in a second file, because the file of version 0.1 is kept unchanged. */
export function roleSecrets(dataDir: string): RoleSecrets {
  const each = <Name extends string>(names: readonly Name[]) =>
    Object.fromEntries(names.map((name) => [name, secret()])) as Record<Name, string>;
  return storedIn(dataDir, "role-secrets.json", RoleSecrets, () => ({
    operatorSecret: secret(),
    metricsSecret: secret(),
    nats: each(NATS_ROLES),
    redis: each(REDIS_ROLES),
  }));
}

/**
 * The secrets of a started system, for commands beside it. They are never generated here: a new secret would sign tokens
 * for a system that does not exist. `otherwise`: how else the user can give the secret. Throws a SettingError when no
 * system was started with this folder.
 */
export function startedSecrets(dataDir: string, otherwise: string): Secrets {
  return startedIn(dataDir, "secrets.json", Secrets, otherwise);
}

/** The same for secrets of single roles and persons. */
export function startedRoleSecrets(dataDir: string, otherwise: string): RoleSecrets {
  return startedIn(dataDir, "role-secrets.json", RoleSecrets, otherwise);
}

function startedIn<Stored>(dataDir: string, name: string, schema: z.ZodType<Stored>, otherwise: string): Stored {
  const file = join(dataDir, name);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if (isErrno(cause, "ENOENT", "ENOTDIR"))
      throw new SettingError(
        `no system was started with the data folder ${resolve(dataDir)}, so it has no secret. Start one with "coroom start", set COROOM_DATA_DIR (--data-dir) to the folder of a started system, or ${otherwise}`,
        { cause },
      );
    if (!(cause instanceof Error && "code" in cause)) throw cause;
    throw new SettingError(
      `cannot read ${file} (${String(cause.code)}). Run this command as the user who started the system, or ${otherwise}`,
      { cause },
    );
  }
  return parsed(file, schema, text);
}

function storedIn<Stored>(dataDir: string, name: string, schema: z.ZodType<Stored>, make: () => Stored): Stored {
  const file = join(dataDir, name);
  return parsed(file, schema, createdOrRead(dataDir, file, make));
}

function parsed<Stored>(file: string, schema: z.ZodType<Stored>, text: string): Stored {
  const stored = schema.safeParse(parseJson(text));
  if (!stored.success)
    throw new StartError(
      `${file} is damaged. Restore it from a backup, or delete it: Coroom then generates new secrets and rejects old tokens`,
    );
  return stored.data;
}

function createdOrRead(dataDir: string, file: string, make: () => unknown): string {
  try {
    makeFolder(dataDir);
    createOnce(join(dataDir, ".gitignore"), "*\n"); // A project that contains the folder must not commit the secrets.
    createOnce(file, JSON.stringify(make(), null, 2));
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause)) throw cause;
    throw new StartError(
      `the data folder ${dataDir} cannot be used (${String(cause.code)}). ${folderAdvice(cause)}, or set COROOM_DATA_DIR to another folder`,
      { cause },
    );
  }
}

/** Links a complete file into place. If two processes start together, both use the secrets of the first. */
function createOnce(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600 });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
  } finally {
    rmSync(draft);
  }
}

function secret(): string {
  return randomBytes(32).toString("base64url");
}

type AllSecrets = Secrets & Pick<RoleSecrets, "operatorSecret" | "metricsSecret">;

export type SecretsGiven = Pick<StartConfig, (typeof SECRETS)[number] | "roles" | "production" | "dataDir" | "jwksUrl" | "jwksFile">;

/**
 * Returns generated values for missing secrets, or throws when they must be configured. A JWKS replaces the secret for
 * tokens.
 */
export function missingSecrets(given: SecretsGiven): Partial<AllSecrets> {
  const hasKeys = given.jwtSecret !== "" || given.jwksUrl !== "" || given.jwksFile !== "";
  if (!given.roles.includes("engines") || given.production) {
    refuseMissing(given, hasKeys);
    return {};
  }
  const { jwtSecret, roomSecret, internalSecret } = localSecrets(given.dataDir);
  const { operatorSecret, metricsSecret } = roleSecrets(given.dataDir);
  return {
    ...(hasKeys ? {} : { jwtSecret }),
    ...(given.roomSecret === "" ? { roomSecret } : {}),
    ...(given.internalSecret === "" ? { internalSecret } : {}),
    ...(given.operatorSecret === "" ? { operatorSecret } : {}),
    ...(given.metricsSecret === "" ? { metricsSecret } : {}),
  };
}

function refuseMissing({ roles, roomSecret, internalSecret }: SecretsGiven, hasKeys: boolean): void {
  const runs = (...any: Role[]): boolean => any.some((role) => roles.includes(role));
  const problems = [
    ...(runs("gateway") && !hasKeys
      ? ["COROOM_JWT_SECRET, COROOM_JWKS_URL or COROOM_JWKS_FILE: the keys with which gateways verify tokens"]
      : []),
    ...(runs("room-server") && roomSecret === "" ? ["COROOM_ROOM_SECRET: the same for all room servers"] : []),
    ...(runs("gateway", "document-service", "leaderboard") && internalSecret === ""
      ? ["COROOM_INTERNAL_SECRET: the same for gateways, document services and leaderboards"]
      : []),
  ];
  if (problems.length > 0)
    throw new SettingError(
      `secrets are missing. Roles in separate processes or in production must share the same secrets. Set:\n  ${problems.join("\n  ")}`,
    );
}
