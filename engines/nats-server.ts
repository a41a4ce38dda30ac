/** Runs a real nats-server with JetStream on files, alone or as a member of a cluster. */

import { join, resolve } from "node:path";
import { answersOverTcp } from "./ask.ts";
import { BINARIES } from "./binaries.ts";
import { claimDataDir, writeOwnFile } from "./data-dir.ts";
import { runEngine, type Engine } from "./engine.ts";
import { findBinary, type FindOptions } from "./find.ts";
import { claimPort } from "./free-port.ts";
import { natsConfigText, type NatsCluster, type NatsTls, type NatsUsers } from "./nats-config.ts";

export type NatsServerOptions = FindOptions & {
  readonly dataDir: string;
  /** Absent or 0: any free port. */
  readonly port?: number;
  readonly host?: string;
  readonly serverName?: string;
  readonly syncAlways?: boolean;
  /** Port of the HTTP monitoring; absent: none. */
  readonly monitorPort?: number;
  readonly memoryBytesMax?: number;
  readonly fileBytesMax?: number;
  readonly tags?: readonly string[];
  /** A cluster member counts as ready when it answers, because its JetStream waits for a quorum of members. */
  readonly cluster?: NatsCluster;
  /** Absent: every client is accepted. */
  readonly users?: NatsUsers;
  readonly tls?: NatsTls;
  /** Added to the environment of the process. */
  readonly env?: Readonly<Record<string, string>>;
};

const MEMORY_BYTES_MAX = 256 * 1024 ** 2;
const FILE_BYTES_MAX = 64 * 1024 ** 3;
const ASK_MS_MAX = 500;

export async function startNatsServer(options: NatsServerOptions): Promise<Engine> {
  const binary = await findBinary(BINARIES.natsServer, options);
  const host = options.host ?? "127.0.0.1";
  const dataDir = resolve(options.dataDir);
  const lock = claimDataDir(dataDir);
  try {
    const port = await claimPort(options.port, host, "COROOM_NATS_PORT");
    if (options.cluster !== undefined) await claimPort(options.cluster.port, host, "the cluster port");
    if (options.monitorPort !== undefined) await claimPort(options.monitorPort, host, "the monitoring port");
    const config = join(dataDir, "nats-server.conf");
    writeOwnFile(
      config,
      natsConfigText({
        serverName: options.serverName ?? "coroom-local",
        host,
        port,
        storeDir: dataDir,
        monitorPort: options.monitorPort,
        syncAlways: options.syncAlways ?? false,
        memoryBytesMax: options.memoryBytesMax ?? MEMORY_BYTES_MAX,
        fileBytesMax: options.fileBytesMax ?? FILE_BYTES_MAX,
        tags: options.tags ?? [],
        cluster: options.cluster,
        users: options.users,
        tls: options.tls,
      }),
    );
    return await runEngine({
      name: BINARIES.natsServer.name,
      url: `nats://${host}:${port}`,
      port,
      command: {
        path: binary.path,
        args: ["-c", config],
        env: { ...binary.env, ...options.env },
        cwd: dataDir,
        logFile: join(dataDir, "nats-server.log"),
      },
      lock,
      isReady: () => (options.cluster === undefined ? jetStreamAnswers(port, host, options.users) : natsAnswers(port, host, options.users)),
    });
  } catch (error) {
    lock.release();
    throw error;
  }
}

function connectAs(users: NatsUsers | undefined): string {
  const first = users?.[0];
  const login = first === undefined || "nkey" in first ? {} : { user: first.user, pass: first.password };
  return `CONNECT ${JSON.stringify({ verbose: false, pedantic: false, name: "coroom-ready", ...login })}\r\n`;
}

function natsAnswers(port: number, host: string, users: NatsUsers | undefined): Promise<boolean> {
  return answersOverTcp({ host, port, send: `${connectAs(users)}PING\r\n`, msMax: ASK_MS_MAX }, (received) => received.includes("PONG"));
}

/**
 * True when JetStream accepts requests: a single server does so immediately, a cluster after the election of a leader.
 */
export function jetStreamAnswers(port: number, host = "127.0.0.1", users?: NatsUsers): Promise<boolean> {
  const inbox = "_INBOX.coroom-ready";
  const send = `${connectAs(users)}SUB ${inbox} 1\r\nPUB $JS.API.INFO ${inbox} 0\r\n\r\n`;
  return answersOverTcp(
    { host, port, send, msMax: ASK_MS_MAX },
    (received) => received.includes(`MSG ${inbox}`) && !received.includes(`"error"`),
  );
}
