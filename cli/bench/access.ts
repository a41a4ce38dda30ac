/** The tokens of `coroom bench`: signed for each person, or the one that the operator gave. */

import { decodeJwt } from "jose";
import { z } from "zod";

import { SettingError } from "../../shared/settings/settings.ts";
import type { Token } from "../../client/index.ts";
import { gatewayFor } from "../local-addresses.ts";
import { localToken } from "../token.ts";
import type { BenchConfig } from "./bench-settings.ts";
import { rampUpSecondsOf, ROOM_PREFIX } from "./plan.ts";

/** `tokenOf`: of a person, by its number from 0. `remedy`: what to do if the gateway refuses the tokens. */
export type BenchAccess = {
  readonly url: string;
  readonly tenant: string;
  readonly tokenOf: (person: number) => Token;
  readonly adminTokenOf: (person: number) => Promise<string>;
  readonly remedy: string;
};

/** Longer than the longest run. */
const SIGNED_SECONDS = 3 * 3_600;
/** Joining, settling and deleting need at most this time beside the load. */
const OTHER_SECONDS = 120;
const RIGHTS = ["read", "write", "admin"];
const NEEDED = `a token of a separate tenant, for the rooms ${ROOM_PREFIX}*, with the rights ${RIGHTS.join(",")}`;
const HOW = `coroom token '${ROOM_PREFIX}*' --user bench --tenant coroom-bench --rights ${RIGHTS.join(",")} prints one if you have the secret`;

const GivenClaims = z.looseObject({
  tenant: z.string().default("default"),
  rooms: z.array(z.string()),
  rights: z.array(z.string()),
  exp: z.number().min(0),
});

/** Throws SettingError if there is neither a usable token nor a secret. `now`: Unix time in milliseconds. */
export async function benchAccess(config: BenchConfig, now: number): Promise<BenchAccess> {
  const url = gatewayFor(config);
  if (config.token !== "") return { url, ...givenAccess(config.token, config, now) };
  const { dataDir, jwtSecret, tenant } = config;
  const sign = (person: number, rights: readonly string[]): Promise<string> =>
    localToken({
      dataDir,
      jwtSecret,
      tenant,
      room: [`${ROOM_PREFIX}*`],
      user: `bench-${person + 1}`,
      name: "",
      rights,
      ttl: SIGNED_SECONDS,
    });
  await sign(0, RIGHTS);
  return {
    url,
    tenant,
    tokenOf: (person) => () => sign(person, ["read", "write"]),
    adminTokenOf: (person) => sign(person, RIGHTS),
    remedy: `Set COROOM_JWT_SECRET (--jwt-secret) to the gateways' secret, COROOM_DATA_DIR to the folder of a local system, or --token to ${NEEDED}`,
  };
}

/** The same token for everybody, so that the limits of one user apply to all connections. */
function givenAccess(token: string, config: BenchConfig, now: number): Omit<BenchAccess, "url"> {
  const claims = claimsOf(token);
  const leftSeconds = Math.floor(claims.exp - now / 1_000);
  const neededSeconds = config.seconds + rampUpSecondsOf(config) + OTHER_SECONDS;
  const problems = [
    ...RIGHTS.filter((right) => !claims.rights.includes(right)).map(
      (right) => `its rights lack ${right}${right === "admin" ? ", which the command needs to delete its rooms" : ""}`,
    ),
    ...(claims.rooms.some(opensAllBenchRooms) ? [] : [`it does not open the rooms ${ROOM_PREFIX}*`]),
    ...(leftSeconds <= 0
      ? [`it expired at ${new Date(claims.exp * 1_000).toISOString().replace(/\.\d+Z$/, "Z")}`]
      : leftSeconds < neededSeconds
        ? [`it expires in ${leftSeconds} s, and the run may take ${neededSeconds} s`]
        : []),
  ];
  if (problems.length > 0) throw new SettingError(`--token cannot be used: ${problems.join("; ")}. Give ${NEEDED}. ${HOW}`);
  return {
    tenant: claims.tenant,
    tokenOf: () => token,
    adminTokenOf: async () => token,
    remedy: `Set --token to ${NEEDED}, or leave it out to sign tokens with COROOM_JWT_SECRET`,
  };
}

function claimsOf(token: string): z.infer<typeof GivenClaims> {
  try {
    return GivenClaims.parse(decodeJwt(token));
  } catch (cause) {
    throw new SettingError(`--token is no token of Coroom (a JWT with the claims tenant, rooms, rights and exp). Give ${NEEDED}. ${HOW}`, {
      cause,
    });
  }
}

/** A trailing * in a token matches any rest of a name. */
function opensAllBenchRooms(pattern: string): boolean {
  return pattern.endsWith("*") && ROOM_PREFIX.startsWith(pattern.slice(0, -1));
}
