/** `coroom doctor`: measures what a Coroom with these settings needs. It changes nothing, and starts nothing. */

import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

import { JetStreamApiError, JetStreamError, jetstreamManager } from "@nats-io/jetstream";
import { z } from "zod";

import { NATS_ROLES, type NatsRole } from "../shared/bus/permissions.ts";
import { type Subjects, subjectsOf } from "../shared/bus/subjects.ts";
import { joinBus } from "../shared/io/bus-announcements.ts";
import { refusalOf } from "../shared/io/jetstream-stores.ts";
import { checkLogBus, checkLogPartitions } from "../shared/io/log-stream.ts";
import { isNoAnswer } from "../shared/io/nats-json.ts";
import { closeNats, isForbidden, type NatsConnection } from "../shared/io/nats.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { parseJson } from "../shared/parse-json.ts";
import { StartError } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import { SettingError } from "../shared/settings/settings.ts";
import { ownAnnouncement } from "./bus-process.ts";
import type { PrintLine } from "./command.ts";
import {
  type DoctorFinding,
  findingLine,
  judgeCertificate,
  judgeClock,
  judgeDisk,
  judgeOpenFiles,
  judgeNats,
  judgeSecrets,
  judgeServices,
  judgeStorage,
  judgeStream,
  ok,
  problem,
  warning,
} from "./findings.ts";
import { checkRedis } from "./doctor-redis.ts";
import { checkStore } from "./doctor-store.ts";
import { readAnswer } from "./ask-gateway.ts";
import { hasLocalNats, localGatewayUrl } from "./local-addresses.ts";
import { missingSecrets, startedRoleSecrets } from "./secrets.ts";
import { connectOperator } from "./ops.ts";
import type { StartConfig } from "./settings.ts";
import { refuseUnfit } from "./start-checks.ts";
import { localToken } from "./token.ts";

const ANSWER_MS_MAX = 3_000;
/** Findings are printed instead. */
const NO_LOG: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const CHECKS = [
  ["settings", checkSettings],
  ["TLS", checkTls],
  ["open files", checkOpenFiles],
  ["disk", checkDisk],
  ["NATS", checkNats],
  ["Redis", checkRedis],
  ["store", checkStore],
  ["gateway", checkGateway],
] as const;

/** Throws a SettingError when there is a problem, so that the command ends with an error. */
export async function doctor(config: StartConfig, print: PrintLine): Promise<void> {
  let problems = 0;
  for (const [about, check] of CHECKS) {
    const asProblem = (error: unknown): readonly DoctorFinding[] => [problemOf(error, about)];
    for (const finding of await check(config).catch(asProblem)) {
      if (finding.state === "problem") problems += 1;
      print(findingLine(finding));
    }
  }
  if (problems > 0)
    throw new SettingError(`${problems === 1 ? "1 problem" : `${problems} problems`} found; each line above states what to do`);
}

/** Such as a data folder that cannot be used. The other checks follow. */
function problemOf(error: unknown, about: string): DoctorFinding {
  if (error instanceof StartError || error instanceof SettingError) return problem(about, error.message);
  throw error;
}

/** A local system generates the secrets that are missing. */
async function checkSettings(config: StartConfig): Promise<readonly DoctorFinding[]> {
  const isLocal = config.roles.includes("engines") && !config.production;
  const assumed = "a".repeat(32);
  const given = isLocal ? { ...config, ...filled(config, assumed) } : config;
  const unfit = await refuseUnfit(given).then(
    () => [],
    (error: unknown) => {
      if (!(error instanceof SettingError)) throw error;
      const lines = error.message.split("\n").map((each) => each.trim());
      return lines.length > 1 ? lines.filter((each) => !each.endsWith(":")) : lines; // Without the title of a list.
    },
  );
  const settings: DoctorFinding[] =
    unfit.length === 0 ? [ok("settings", `fit together for ${config.roles.join(", ")}`)] : unfit.map((text) => problem("settings", text));
  const missing = isLocal ? [] : missingOf(config).map((text) => problem("secrets", `${text}. coroom secrets prints new ones`));
  return [...settings, ...(missing.length > 0 ? missing : judgeSecrets(config))];
}

function missingOf(config: StartConfig): readonly string[] {
  try {
    missingSecrets(config);
    return [];
  } catch (error) {
    if (error instanceof SettingError)
      return error.message
        .split("\n")
        .slice(1)
        .map((each) => each.trim());
    throw error;
  }
}

/** A JWKS replaces the secret for tokens. */
function filled(config: StartConfig, assumed: string) {
  const { jwtSecret, roomSecret, internalSecret, operatorSecret, metricsSecret } = config;
  const others = { roomSecret, internalSecret, operatorSecret, metricsSecret };
  const all = { ...(config.jwksUrl === "" && config.jwksFile === "" ? { jwtSecret } : {}), ...others };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, value === "" ? `${assumed}${name}` : value])) as typeof all;
}

async function checkTls(config: StartConfig): Promise<readonly DoctorFinding[]> {
  const files = {
    COROOM_TLS_CERT_FILE: config.tlsCertFile,
    COROOM_INTERNAL_CERT_FILE: config.internalCertFile,
    COROOM_NATS_CERT: config.natsCert,
  };
  return Object.entries(files).flatMap(([setting, file]): DoctorFinding[] => {
    if (file === "" || !existsSync(file)) return []; // `checkSettings` reports a missing file.
    try {
      return [judgeCertificate(setting, Date.parse(new X509Certificate(readFileSync(file)).validTo), Date.now())];
    } catch (cause) {
      if (!(cause instanceof Error && "code" in cause)) throw cause;
      return [
        problem("TLS", `${setting}=${file} has no readable certificate (${String(cause.code)}). Name a PEM file that begins with it`),
      ];
    }
  });
}

/** Only Linux shows the limit of a process in a file. */
async function checkOpenFiles(config: StartConfig): Promise<readonly DoctorFinding[]> {
  const limits = existsSync("/proc/self/limits") ? readFileSync("/proc/self/limits", "utf8") : "";
  const limit = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return limit === undefined ? [] : [judgeOpenFiles(Number(limit), config)];
}

async function checkDisk({ roles, dataDir }: StartConfig): Promise<readonly DoctorFinding[]> {
  if (!roles.includes("engines")) return [];
  let folder = resolve(dataDir);
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, blocks, bsize } = await statfs(folder);
  return [judgeDisk(dataDir, bavail * bsize, blocks * bsize)];
}

async function checkNats(config: StartConfig): Promise<readonly DoctorFinding[]> {
  const isLocal = config.natsUrl === "";
  if (isLocal && !hasLocalNats(config.dataDir))
    return [ok("NATS", `no local system has run in ${config.dataDir} yet. coroom start starts one`)];
  const role = isLocal ? "operator" : ownRole(config);
  const nats = await connectOperator(config, role);
  return checkConnected(nats, config, role).finally(() => closeNats(nats));
}

/** A process of its own has the NATS user of its role, which receives answers only at the role's inbox. */
function ownRole({ roles }: StartConfig): NatsRole {
  return (roles.includes("engines") ? undefined : NATS_ROLES.find((role) => roles.some((own) => own === role))) ?? "operator";
}

async function checkConnected(nats: NatsConnection, config: StartConfig, role: NatsRole): Promise<readonly DoctorFinding[]> {
  const rttMs = await nats.rtt();
  const answers = judgeNats(nats.info?.server_name ?? "", nats.info?.version ?? "", rttMs);
  const subjects = subjectsOf(config.environment);
  try {
    const manager = await jetstreamManager(nats, { timeout: ANSWER_MS_MAX, checkAPI: false });
    const { storage, limits } = await manager.getAccountInfo();
    const found: DoctorFinding[] = [answers, judgeStorage(storage, limits.max_storage), await checkRelease(nats, subjects, role)];
    if (!(await checkLogPartitions(nats, subjects, config.logPartitions)))
      return [...found, ok("log", `no Coroom of the environment ${config.environment} has started here yet`)];
    for (let partition = 0; partition < config.logPartitions; partition++) {
      const before = Date.now();
      const { config: stream, cluster, ts } = await manager.streams.info(subjects.logStream(partition));
      if (partition === 0) found.push(judgeClock((before + Date.now()) / 2 - Date.parse(String(ts))));
      const lagging = (cluster?.replicas ?? []).filter(({ current, offline }) => !current || offline === true).map(({ name }) => name);
      const hasLeader = cluster === undefined || cluster.leader !== undefined;
      found.push(judgeStream({ name: stream.name, replicas: stream.num_replicas, bytesMax: stream.max_bytes, hasLeader, lagging }, config));
    }
    return found;
  } catch (error) {
    if (error instanceof SettingError) return [answers, problem("log", error.message)];
    if (isForbidden(error)) return [answers, wrongUser(role, error as Error)];
    const refusal = refusalOf(error);
    if (refusal !== undefined) return [answers, problem("JetStream", refusal.message)];
    if (!isNoAnswer(error) && !(error instanceof JetStreamError) && !(error instanceof JetStreamApiError)) throw error;
    return [
      answers,
      problem("JetStream", `does not answer (${error instanceof Error ? error.message : ""}). Check that most servers of the cluster run`),
    ];
  }
}

function wrongUser(role: NatsRole, { message }: Error): DoctorFinding {
  const text = `does not allow a subject that ${role} needs (${message}). Use the NATS user of this role, and print the users again with coroom nats-users`;
  return problem("NATS", text);
}

/** Before an upgrade or a rollback, `coroom doctor` of the other release shows whether its processes will start. */
async function checkRelease(nats: NatsConnection, subjects: Subjects, role: NatsRole): Promise<DoctorFinding> {
  const own = ownAnnouncement(["doctor"]);
  let forbidden: Error | undefined;
  try {
    await checkLogBus(nats, subjects, own);
    await joinBus(nats, subjects, own, { clock, log: NO_LOG, receiveForbidden: (error) => void (forbidden = error) });
    if (forbidden !== undefined) return wrongUser(role, forbidden);
    return ok("release", `${own.release} (bus version ${own.bus.version}) works with the stored data and all running processes`);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return problem("release", error.message);
  }
}

async function checkGateway(config: StartConfig): Promise<readonly DoctorFinding[]> {
  const { dataDir, port, host, tlsCertFile, roles } = config;
  if (!roles.includes("gateway")) return [];
  const own = `${tlsCertFile === "" ? "http" : "https"}://${host === "0.0.0.0" ? "127.0.0.1" : host}:${port}`;
  const url = localGatewayUrl(dataDir) ?? own;
  const ready = await answerOf(`${url}/readyz`);
  if (ready === undefined)
    return [warning("gateway", `nothing answers at ${url}. Start it with coroom start, or set COROOM_PORT to its port`)];
  if (!ready.ok) return [problem("gateway", `${url} is not ready: ${ready.text}`)];
  return [ok("gateway", `${url} is ready`), ...(await checkServices(url, config)), ...(await checkTokens(url, config))];
}

const Fleet = z.object({
  reachesNats: z.literal(true), // Otherwise the gateway knows only itself.
  servers: z.array(z.unknown()),
  services: z.object({ documents: z.number() }),
  placement: z.object({ leader: z.unknown() }).partial(),
});

/** A gateway is ready without them, so that its clients stay connected. */
async function checkServices(url: string, { dataDir, operatorSecret }: StartConfig): Promise<readonly DoctorFinding[]> {
  if (operatorSecret === "" && !existsSync(join(dataDir, "role-secrets.json"))) return [];
  const answer = await answerOf(`${url}/v1/admin/fleet`, operatorSecret || startedRoleSecrets(dataDir, "").operatorSecret);
  const fleet = Fleet.safeParse(parseJson(answer?.text ?? "")); // No fleet: the gateway has another secret.
  if (!fleet.success) return [];
  const { servers, services, placement } = fleet.data;
  return judgeServices({
    roomServers: servers.length,
    documents: services.documents,
    hasPlacementLeader: placement.leader !== undefined,
  });
}

/** Undefined: no server answers in time. */
async function answerOf(url: string, bearer = ""): Promise<{ ok: boolean; status: number; text: string } | undefined> {
  try {
    const headers = { authorization: `Bearer ${bearer}` };
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    return { ok: answer.ok, status: answer.status, text: (await answer.text()).trim() };
  } catch (error) {
    if (error instanceof TypeError || error instanceof DOMException) return undefined; // The network failed, or the time is over.
    throw error;
  }
}

/** Whether the gateway accepts what `coroom token` prints with these settings. It signs with a secret only, never for a JWKS. */
async function checkTokens(url: string, { dataDir, jwtSecret, jwksUrl, jwksFile }: StartConfig): Promise<readonly DoctorFinding[]> {
  if (jwksUrl !== "" || jwksFile !== "") return [];
  if (jwtSecret === "" && !existsSync(join(dataDir, "secrets.json"))) return []; // No local system was started here.
  const claims = { user: "coroom-doctor", name: "", tenant: "default", room: ["*"], rights: ["read" as const], ttl: 60 };
  const answer = await answerOf(`${url}/v1/usage`, await localToken({ ...claims, jwtSecret, dataDir }));
  if (answer === undefined) return [];
  if (answer.status !== 401) return [ok("tokens", `${url} accepts tokens of coroom token`)]; // The token only lacks the right admin.
  const remedy = "set COROOM_JWT_SECRET (--jwt-secret) to the secret with which the gateway was started, or COROOM_DATA_DIR to its folder";
  return [problem("tokens", `${url} refuses tokens of coroom token (${readAnswer(answer.text)?.message ?? answer.text}): ${remedy}`)];
}
