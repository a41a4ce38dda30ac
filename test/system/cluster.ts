/**
 * A whole Coroom for a test: a real nats-server and each role in processes of its own, as `coroom start
 * --roles` runs them, any of which can be killed, paused and started again.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { makeToken } from "../../cli/token.ts";
import { spawnChild, type Child, type Exit } from "../../engines/child.ts";
import type { Engine } from "../../engines/engine.ts";
import { claimPort } from "../../engines/free-port.ts";
import { startNatsServer } from "../../engines/nats-server.ts";
import { eventually } from "./eventually.ts";

export type ClusterShape = {
  readonly gateways: number;
  readonly roomServers: number;
  /** Settings of every process, as variables without their prefix: `{ EDITS_PER_SECOND: "100000" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where the roles find NATS, if not at the server itself: a proxy in between, say. */
  readonly natsUrl?: (server: string) => Promise<string>;
  /** Where each room server finds it: a line of its own that can be cut. */
  readonly roomServerNatsUrl?: (server: string, index: number) => Promise<string>;
};

const JWT_SECRET = "a secret of the tests, 32 characters";
const READY_MS_MAX = 30_000;
const STOP_PATIENCE_MS = 10_000;

/** One process of one role. */
export class Process {
  readonly role: string;
  readonly #logFile: string;
  readonly #start: () => Promise<Child>;
  #child: Child;

  private constructor(role: string, logFile: string, start: () => Promise<Child>, child: Child) {
    this.role = role;
    this.#logFile = logFile;
    this.#start = start;
    this.#child = child;
  }

  static async start(role: string, logFile: string, settings: Readonly<Record<string, string>>): Promise<Process> {
    const start = () => startRole(role, logFile, settings);
    return new Process(role, logFile, start, await start());
  }

  /** All that it has printed, over all its runs. */
  printed(): string {
    return readFileSync(this.#logFile, "utf8");
  }

  get pid(): number {
    return this.#child.pid;
  }

  get exited(): Promise<Exit> {
    return this.#child.exited;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  /** Again after its end. */
  async startAgain(): Promise<void> {
    this.#child = await this.#start();
  }

  async restart(): Promise<void> {
    await this.#child.stop(STOP_PATIENCE_MS);
    this.#child = await this.#start();
  }

  async stop(): Promise<void> {
    await this.#child.stop(STOP_PATIENCE_MS);
  }
}

export type Gateway = { readonly process: Process; readonly url: string; readonly httpUrl: string };

export class Cluster {
  readonly environment: string;
  readonly nats: Engine;
  readonly placement: Process;
  readonly documentService: Process;
  readonly roomServers: readonly Process[];
  readonly gateways: readonly Gateway[];
  readonly folder: string;

  private constructor(parts: Pick<Cluster, "environment" | "nats" | "placement" | "documentService" | "roomServers" | "gateways" | "folder">) {
    this.environment = parts.environment;
    this.nats = parts.nats;
    this.placement = parts.placement;
    this.documentService = parts.documentService;
    this.roomServers = parts.roomServers;
    this.gateways = parts.gateways;
    this.folder = parts.folder;
  }

  static async start(shape: ClusterShape): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "coroom-test-"));
    const environment = "test";
    const nats = await startNatsServer({ dataDir: join(folder, "nats") });
    const natsUrl = shape.natsUrl === undefined ? nats.url : await shape.natsUrl(nats.url);
    const settings = { DRAIN_MS_MAX: "0", ...shape.settings, ENVIRONMENT: environment, NATS_URL: natsUrl, JWT_SECRET, ROOM_SECRET: JWT_SECRET, INTERNAL_SECRET: JWT_SECRET, DATA_DIR: folder };
    const role = (name: string, index: number, more: Record<string, string> = {}) =>
      Process.start(name, join(folder, `${name}-${index}.log`), { ...settings, ...more });

    const placement = await role("placement", 1);
    const documentService = await role("document-service", 1);
    const roomServers = await Promise.all(
      Array.from({ length: shape.roomServers }, async (_, index) =>
        role("room-server", index + 1, shape.roomServerNatsUrl === undefined ? {} : { NATS_URL: await shape.roomServerNatsUrl(nats.url, index) }),
      ),
    );
    const gateways = await Promise.all(
      Array.from({ length: shape.gateways }, async (_, index) => {
        const port = await claimPort(0, "127.0.0.1", "port"); // Chosen here, so that a restarted gateway is where its clients look for it.
        return { process: await role("gateway", index + 1, { PORT: String(port) }), url: `ws://127.0.0.1:${port}`, httpUrl: `http://127.0.0.1:${port}` };
      }),
    );
    return new Cluster({ environment, nats, placement, documentService, roomServers, gateways, folder });
  }

  token(room: string, user: string, more: { rights?: readonly string[]; ttl?: number; tenant?: string } = {}): Promise<string> {
    return makeToken({ room: [room], user, name: user, rights: more.rights ?? ["read", "write"], tenant: more.tenant ?? "default", ttl: more.ttl ?? 3600 }, JWT_SECRET);
  }

  async stop(): Promise<void> {
    const processes = [...this.gateways.map(({ process }) => process), ...this.roomServers, this.documentService, this.placement];
    await Promise.all(processes.map((process) => process.stop()));
    await this.nats.stop();
    rmSync(this.folder, { recursive: true });
  }
}

async function startRole(role: string, logFile: string, settings: Readonly<Record<string, string>>): Promise<Child> {
  const env = Object.fromEntries(Object.entries(settings).map(([name, value]) => [`COROOM_${name}`, value]));
  const readyLines = () => (existsSync(logFile) ? readFileSync(logFile, "utf8").split("coroom ready").length : 1);
  const before = readyLines();
  const child = await spawnChild({ path: process.execPath, args: [resolve("dist/cli/main.js"), "start", "--roles", role], env, cwd: resolve("."), logFile });

  await eventually(`${role} is ready`, () => readyLines() > before, READY_MS_MAX);
  return child;
}
