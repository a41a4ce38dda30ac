/** The findings of `coroom doctor`: conclusions from its measurements, each with a remedy. */

import { BINARIES, isAtLeast, parseVersion, type Version } from "../engines/binaries.ts";
import { envName } from "../shared/settings/settings.ts";
import { SECRETS } from "./secrets.ts";
import type { StartConfig } from "./settings.ts";

export type DoctorFinding = { readonly about: string; readonly state: "ok" | "warning" | "problem"; readonly text: string };

export const ok = (about: string, text: string): DoctorFinding => ({ about, state: "ok", text });
export const warning = (about: string, text: string): DoctorFinding => ({ about, state: "warning", text });
export const problem = (about: string, text: string): DoctorFinding => ({ about, state: "problem", text });

const MARKS: Readonly<Record<DoctorFinding["state"], string>> = { ok: "ok     ", warning: "warning", problem: "PROBLEM" };

export function findingLine({ about, state, text }: DoctorFinding): string {
  return `${MARKS[state]}  ${about.padEnd(12)} ${text}`;
}

/** Tokens, operator passes and the numbering of a room's owners use the date. */
const [SKEW_MS_WARNING, SKEW_MS_PROBLEM] = [1_000, 30_000];

/** `aheadMs`: of this machine's clock, compared with that of the nats-server. */
export function judgeClock(aheadMs: number): DoctorFinding {
  const ms = Math.round(Math.abs(aheadMs));
  if (ms < SKEW_MS_WARNING) return ok("clock", `differs from the nats-server's by ${ms} ms`);
  const text = `is ${ms} ms ${aheadMs > 0 ? "ahead of" : "behind"} the nats-server's. Run NTP (chrony or systemd-timesyncd) on all machines`;
  return ms < SKEW_MS_PROBLEM ? warning("clock", text) : problem("clock", text);
}

/** The roles beside a gateway, by their heartbeats. */
type RunningServices = { readonly roomServers: number; readonly documents: number; readonly hasPlacementLeader: boolean };

export function judgeServices({ roomServers, documents, hasPlacementLeader }: RunningServices): readonly DoctorFinding[] {
  const remedy = "Start one, or check whether it reaches NATS";
  const found = [
    ...(roomServers === 0 ? [problem("room servers", `none sends heartbeats, so nothing can be edited. ${remedy}`)] : []),
    ...(documents === 0
      ? [problem("documents", `no document service sends heartbeats, so clients that open a document wait. ${remedy}`)]
      : []),
    ...(hasPlacementLeader ? [] : [warning("placement", `no process leads, so no room is moved or gets a replica. ${remedy}`)]),
  ];
  return found.length > 0 ? found : [ok("roles", "room servers, document services and placement send heartbeats")];
}

const GIB = 1_024 ** 3;
const FREE_SHARE_MIN = 0.1;

export function judgeDisk(folder: string, freeBytes: number, totalBytes: number): DoctorFinding {
  const text = `${(freeBytes / GIB).toFixed(1)} GiB of ${(totalBytes / GIB).toFixed(1)} GiB free for ${folder}`;
  if (freeBytes < GIB / 4) return problem("disk", `${text}. The log stores nothing on a full disk: free space now`);
  return freeBytes < GIB || freeBytes / totalBytes < FREE_SHARE_MIN
    ? warning("disk", `${text}. Free space, or move COROOM_DATA_DIR to a larger disk`)
    : ok("disk", text);
}

/** `used`, `limit`: bytes of JetStream's account; a limit below 1 means none. */
export function judgeStorage(used: number, limit: number): DoctorFinding {
  const text = `${(used / GIB).toFixed(2)} GiB stored`;
  if (limit < 1) return ok("JetStream", `${text}; the account has no limit; max_file_store of nats-server limits the storage`);
  const share = used / limit;
  const of = `${text}, ${Math.round(share * 100)}% of the account's limit`;
  if (share < 0.8) return ok("JetStream", of);
  return (share < 0.98 ? warning : problem)("JetStream", `${of}. Raise the limit of the account, or max_file_store`);
}

type StreamFacts = {
  readonly name: string;
  readonly replicas: number;
  /** A limit below 1 means none. */
  readonly bytesMax: number;
  readonly hasLeader: boolean;
  /** Replicas that are offline or behind. */
  readonly lagging: readonly string[];
};

export function judgeStream(
  { name, replicas, bytesMax, hasLeader, lagging }: StreamFacts,
  { logReplicas }: Pick<StartConfig, "logReplicas">,
): DoctorFinding {
  if (!hasLeader) return problem(name, "has no leader: most of its nats-servers are down or cut off. Start them, and check the network");
  // A start limits the log, unless nats-server cannot reserve the smallest limit.
  if (bytesMax < 1)
    return problem(
      name,
      "has no size limit, because JetStream has nearly no storage left. Raise max_file_store or the limits of the account, and restart one room server",
    );
  if (lagging.length > 0)
    return warning(name, `replicas offline or behind: ${lagging.join(", ")}. Check these nats-servers and their disks`);
  if (replicas !== logReplicas)
    return warning(
      name,
      `has ${replicas} replicas, COROOM_LOG_REPLICAS is ${logReplicas}. Set the same value for all roles and restart one room server`,
    );
  return ok(name, `${replicas === 1 ? "1 replica" : `${replicas} replicas`}, all current`);
}

/** Files of a process beside its connections: engines, logs, NATS, Redis and libraries. */
const OTHER_FILES = 1_000;

export function judgeOpenFiles(limit: number, { roles, connectionsMax }: Pick<StartConfig, "roles" | "connectionsMax">): DoctorFinding {
  const needed = (roles.includes("gateway") ? connectionsMax : 0) + OTHER_FILES;
  const text = `${limit} open files allowed`;
  return limit >= needed
    ? ok("open files", text)
    : warning(
        "open files",
        `${text}, ${needed} needed for COROOM_CONNECTIONS_MAX. Raise it with ulimit -n, LimitNOFILE= of systemd, or lower COROOM_CONNECTIONS_MAX`,
      );
}

const DAY_MS = 86_400_000;

export function judgeCertificate(setting: string, validUntil: number, now: number): DoctorFinding {
  const days = Math.floor((validUntil - now) / DAY_MS);
  if (days < 0) return problem("TLS", `the certificate in ${setting} has expired. Renew it, and restart the processes that use it`);
  return days < 14
    ? warning("TLS", `the certificate in ${setting} expires in ${days} days. Renew it`)
    : ok("TLS", `the certificate in ${setting} is valid for ${days} days`);
}

const SECRET_LENGTH_MIN = 32;

export function judgeSecrets(config: Pick<StartConfig, (typeof SECRETS)[number]>): readonly DoctorFinding[] {
  const given = SECRETS.filter((name) => config[name] !== "");
  const short = given.filter((name) => config[name].length < SECRET_LENGTH_MIN);
  const equal = given.filter((name, index) => given.some((other, place) => place < index && config[other] === config[name]));
  const findings = [
    ...short.map((name) =>
      problem("secrets", `${envName(name)} has fewer than ${SECRET_LENGTH_MIN} characters. coroom secrets prints new ones`),
    ),
    ...equal.map((name) =>
      problem("secrets", `${envName(name)} equals another secret, so who knows one has both. coroom secrets prints new ones`),
    ),
  ];
  if (findings.length > 0) return findings;
  return [
    ok(
      "secrets",
      given.length === 0
        ? "none is set: a local system generates its own"
        : `${given.length} of ${SECRETS.length} are set, long enough and different`,
    ),
  ];
}

export function judgeNats(name: string, version: string, rttMs: number): DoctorFinding {
  const text = `${name} ${version} answers in ${rttMs} ms`;
  return isSupported(version, BINARIES.natsServer)
    ? ok("NATS", text)
    : problem("NATS", `${text}; Coroom needs ${BINARIES.natsServer.versionMin.join(".")} or newer. Upgrade it`);
}

function isSupported(version: string, { versionMin }: { readonly versionMin: Version }): boolean {
  const parsed = parseVersion(version);
  return parsed === undefined || isAtLeast(parsed, versionMin);
}

/** `policy`, `aof`: from INFO; undefined if the user may not ask. */
export function judgeRedis(version: string | undefined, policy: string | undefined, aof: boolean | undefined): DoctorFinding {
  const text = version === undefined ? "answers" : `${version} answers`;
  if (version !== undefined && !isSupported(version, BINARIES.redisServer))
    return problem("Redis", `${text}; Coroom needs ${BINARIES.redisServer.versionMin.join(".")} or newer. Upgrade it`);
  if (policy !== undefined && policy !== "noeviction")
    return problem("Redis", `${text}; maxmemory-policy is ${policy}, so boards and bans may be evicted. Set it to noeviction`);
  return aof === false
    ? warning("Redis", `${text}; appendonly is off, so bans and newest points are lost at a restart. Set appendonly yes`)
    : ok("Redis", text);
}
