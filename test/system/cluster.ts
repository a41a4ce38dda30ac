/**
 * A complete Coroom for a test. It has one nats-server or a cluster of three, and each role in a separate process, as
 * `coroom start --roles` runs it. A test can kill, pause and restart each process.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { NatsRole } from "../../shared/bus/permissions.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { withUser } from "../../cli/local-addresses.ts";
import { natsUsers, redisUsers } from "../../cli/local-engines.ts";
import { makeToken } from "../../cli/token.ts";
import type { Engine } from "../../engines/engine.ts";
import { claimPort } from "../../engines/free-port.ts";
import { startNatsCluster } from "../../engines/nats-cluster.ts";
import type { NatsUsers } from "../../engines/nats-config.ts";
import { startTestNats, startTestRedis } from "../contract/test-engines.ts";
import { Process } from "./role-process.ts";

export type { Process } from "./role-process.ts";

type ClusterShape = {
  readonly gateways: number;
  readonly roomServers: number;
  /** Default: one process for each role. */
  readonly placements?: number;
  readonly documentServices?: number;
  /** Default: none. With a leaderboard, a redis-server starts too. */
  readonly leaderboards?: number;
  /** Count of nats-servers, and of replicas of all data: one, three or five. Default: one. */
  readonly natsServers?: number;
  /** Address of the route between two servers, by their indexes. */
  readonly natsRoute?: (from: number, to: number, address: string) => Promise<string>;
  /** Maximum bytes that JetStream of a single nats-server stores. */
  readonly fileBytesMax?: number;
  /** Port of the monitoring of a single nats-server. */
  readonly natsMonitorPort?: number;
  /** nats-server syncs to disk before it acknowledges. */
  readonly syncAlways?: boolean;
  /** Settings of every process, as environment variables without their prefix: `{ EDITS_PER_SECOND: "100000" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Partitions of the log for which the users of NATS are made. Default: those of the settings. */
  readonly userPartitions?: number;
  /** Additional settings of the first process of this role, the second and so on. */
  readonly roomServerSettings?: readonly Readonly<Record<string, string>>[];
  readonly documentServiceSettings?: readonly Readonly<Record<string, string>>[];
  /** Address of NATS for a process, if not the servers themselves: a proxy, or a connection that a test can cut. */
  readonly natsUrlOf?: (process: ProcessName, servers: readonly string[]) => Promise<string>;
  /** Folder of the built release that the processes run. Default: this one. */
  readonly release?: string;
  /** A program with its arguments that starts the process's program, for example in a namespace. */
  readonly launcherOf?: (process: ProcessName) => readonly [string, ...string[]];
  /** The same for redis-server. */
  readonly redisLauncher?: readonly string[];
};

export type ProcessRole = "placement" | "document-service" | "room-server" | "leaderboard" | "gateway";
/** `index` counts the processes of one role from 0. */
export type ProcessName = { readonly role: ProcessRole; readonly index: number };

const JWT_SECRET = "a secret of the tests, 32 characters";
const OPERATOR_SECRET = "the operator's secret of the tests, 32 characters";
const METRICS_SECRET = "the secret of Prometheus in the tests";
/** The user of the tests themselves. */
const TESTER = "tester";
const PASSWORD = "a password of the tests";

export type RunningGateway = { readonly process: Process; readonly url: string; readonly httpUrl: string };

type Parts = Pick<
  SystemCluster,
  "environment" | "natsServers" | "placements" | "documentServices" | "roomServers" | "leaderboards" | "redis" | "gateways" | "folder"
>;

export class SystemCluster {
  readonly environment: string;
  readonly natsServers: readonly Engine[];
  readonly placements: readonly Process[];
  readonly documentServices: readonly Process[];
  readonly roomServers: readonly Process[];
  readonly leaderboards: readonly Process[];
  readonly redis: Engine | undefined;
  readonly gateways: readonly RunningGateway[];
  readonly folder: string;

  private constructor(parts: Parts) {
    this.environment = parts.environment;
    this.natsServers = parts.natsServers;
    this.placements = parts.placements;
    this.documentServices = parts.documentServices;
    this.roomServers = parts.roomServers;
    this.leaderboards = parts.leaderboards;
    this.redis = parts.redis;
    this.gateways = parts.gateways;
    this.folder = parts.folder;
  }

  static async start(shape: ClusterShape): Promise<SystemCluster> {
    const folder = mkdtempSync(join(tmpdir(), "coroom-test-"));
    const environment = "test";
    const logPartitions = shape.userPartitions ?? Number(shape.settings?.["LOG_PARTITIONS"] ?? sharedSettings.logPartitions.fallback);
    const users = [{ user: TESTER, password: PASSWORD }, ...natsUsers({ environment, logPartitions }, passwordOf)];
    const natsServers = await startNats(shape, users, join(folder, "nats"));
    const urls = natsServers.map(({ url }) => url);
    const settings = {
      DRAIN_MS_MAX: "0",
      LOG_REPLICAS: String(urls.length),
      ...shape.settings,
      ENVIRONMENT: environment,
      JWT_SECRET,
      ROOM_SECRET: JWT_SECRET,
      INTERNAL_SECRET: JWT_SECRET,
      OPERATOR_SECRET,
      METRICS_SECRET,
      DATA_DIR: folder,
    };
    const start = async (role: ProcessRole, index: number, more: Readonly<Record<string, string>> = {}): Promise<Process> => {
      const natsUrl = await (shape.natsUrlOf?.({ role, index }, urls) ?? urls.join(","));
      const ofRole = { ...settings, NATS_URL: withUser(natsUrl, role, passwordOf(role)), ...more };
      return Process.start(role, join(folder, `${role}-${index + 1}.log`), ofRole, shape.launcherOf?.({ role, index }), shape.release);
    };
    // No role needs another at its start. However, one of several nats-servers may not answer when many clients request
    // the same thing at once, and such a client waits 5 s.
    const oneRoleAtATime = urls.length > 1;
    let before: Promise<unknown> = Promise.resolve();
    const several = <Started>(count: number, one: (index: number) => Promise<Started>): Promise<Started[]> => {
      const begin = (): Promise<Started[]> => Promise.all(Array.from({ length: count }, (_, index) => one(index)));
      const started = oneRoleAtATime ? before.then(begin) : begin();
      before = started;
      return started;
    };

    const redis =
      shape.leaderboards === undefined
        ? undefined
        : await startTestRedis({
            dataDir: join(folder, "redis"),
            users: redisUsers(environment, passwordOf),
            ...(shape.redisLauncher === undefined ? {} : { launcher: shape.redisLauncher }),
          });
    const [placements, documentServices, roomServers, leaderboards, gateways] = await Promise.all([
      several(shape.placements ?? 1, (index) => start("placement", index)),
      several(shape.documentServices ?? 1, (index) => start("document-service", index, shape.documentServiceSettings?.[index])),
      several(shape.roomServers, (index) => start("room-server", index, shape.roomServerSettings?.[index])),
      several(shape.leaderboards ?? 0, (index) =>
        start("leaderboard", index, { REDIS_URL: withUser(redis!.url, "leaderboard", passwordOf("leaderboard")) }),
      ),
      several(shape.gateways, async (index) => {
        const port = await claimPort(0, "127.0.0.1", "port"); // Chosen here, so that a restarted gateway keeps its port.
        return {
          process: await start("gateway", index, {
            PORT: String(port),
            ...(redis === undefined ? {} : { REDIS_URL: withUser(redis.url, "gateway", passwordOf("gateway")) }),
          }),
          url: `ws://127.0.0.1:${port}`,
          httpUrl: `http://127.0.0.1:${port}`,
        };
      }),
    ]);
    return new SystemCluster({
      environment,
      natsServers,
      placements,
      documentServices,
      roomServers,
      leaderboards,
      redis,
      gateways,
      folder,
    });
  }

  /** The only nats-server, or the first one. */
  get nats(): Engine {
    return this.natsServers[0]!;
  }

  /** The addresses of all nats-servers for a client, with a user who has all permissions. */
  get natsUrl(): string {
    return withUser(this.natsServers.map(({ url }) => url).join(","), TESTER, PASSWORD);
  }

  /** The same addresses with the user of a role. */
  natsUrlAs(role: NatsRole): string {
    return withUser(this.natsServers.map(({ url }) => url).join(","), role, passwordOf(role));
  }

  get placement(): Process {
    return this.placements[0]!;
  }

  get documentService(): Process {
    return this.documentServices[0]!;
  }

  get operatorSecret(): string {
    return OPERATOR_SECRET;
  }

  /** The secret that the processes share. */
  get internalSecret(): string {
    return JWT_SECRET;
  }

  token(room: string, user: string, more: { rights?: readonly string[]; ttl?: number; tenant?: string } = {}): Promise<string> {
    return makeToken(
      { room: [room], user, name: user, rights: more.rights ?? ["read", "write"], tenant: more.tenant ?? "default", ttl: more.ttl ?? 3600 },
      JWT_SECRET,
    );
  }

  /** Empty if the servers run in containers. */
  #natsLogs(): readonly string[] {
    const folders = this.natsServers.length === 1 ? ["nats"] : this.natsServers.map((_, index) => `nats/nats-${index + 1}`);
    return folders
      .map((name) => join(this.folder, name, "nats-server.log"))
      .filter((file) => existsSync(file))
      .map((file) => readFileSync(file, "utf8"));
  }

  /** Throws if a role used a subject without permission. */
  async stop(): Promise<void> {
    const processes = [
      ...this.gateways.map(({ process }) => process),
      ...this.roomServers,
      ...this.leaderboards,
      ...this.documentServices,
      ...this.placements,
    ];
    await Promise.all(processes.map((process) => process.stop()));
    await Promise.all([...this.natsServers, ...(this.redis === undefined ? [] : [this.redis])].map((server) => server.stop()));
    const violations = this.#natsLogs().flatMap((log) => log.split("\n").filter((line) => line.includes(" Violation ")));
    if (violations.length > 0) throw new Error(`roles did what shared/bus/permissions.ts does not allow:\n${violations.join("\n")}`);
    rmSync(this.folder, { recursive: true });
  }
}

async function startNats(
  { natsServers = 1, natsRoute, syncAlways = false, fileBytesMax, natsMonitorPort: monitorPort }: ClusterShape,
  users: NatsUsers,
  dataDir: string,
): Promise<readonly Engine[]> {
  if (natsServers === 1)
    return [
      await startTestNats({
        dataDir,
        syncAlways,
        users,
        ...(fileBytesMax === undefined ? {} : { fileBytesMax }),
        ...(monitorPort === undefined ? {} : { monitorPort }),
      }),
    ];
  return startNatsCluster({ dataDir, members: natsServers, syncAlways, users, ...(natsRoute === undefined ? {} : { route: natsRoute }) });
}

function passwordOf(role: string): string {
  return `the password of ${role}, for tests`;
}
