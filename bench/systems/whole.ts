/**
 * Servers as their users start them, each with all its processes on one core: Coroom with `npm start`, y-websocket's
 * and Hocuspocus's servers, and the relays.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { NODE_FLAGS } from "../../cli/node-flags.ts";
import { makeToken } from "../../cli/token.ts";
import { spawnChild } from "../../engines/child.ts";
import { claimPort } from "../../engines/free-port.ts";
import { eventually } from "../../test/system/eventually.ts";
import type { DialectName } from "../load/peer-dialects.ts";
import type { ServerProcess } from "../server-usage.ts";
import { LIFTED_LIMITS } from "./coroom.ts";
import { PEER_STOP_PATIENCE_MS, startBare, startRelay } from "./peers.ts";
import type { MeasuredSystem } from "./system.ts";

/** `logFile`: the server's output. Absent: it consists of several processes. */
export type WholeSystem = MeasuredSystem & { readonly dialect: DialectName; readonly logFile?: string };
export const WHOLE_SYSTEM_NAMES = ["coroom", "y-websocket", "hocuspocus", "hocuspocus-sqlite", "relay", "bare"] as const;
export type WholeSystemName = (typeof WHOLE_SYSTEM_NAMES)[number];

const JWT_SECRET = "a secret of the bench, 32 characters";
const READY_MS_MAX = 120_000;

const START: Readonly<Record<WholeSystemName, () => Promise<WholeSystem>>> = {
  "coroom": () => startCoroom(),
  "y-websocket": startYWebsocket,
  "hocuspocus": () => withFolder("hocuspocus", "hocuspocus", () => startBare("hocuspocus")),
  "hocuspocus-sqlite": () =>
    withFolder("hocuspocus-sqlite", "hocuspocus", (folder) =>
      startBare("hocuspocus", { RELAY_DATABASE: join(folder, "documents.sqlite") }),
    ),
  "relay": () => withFolder("relay", "coroom", () => startRelay(1)),
  "bare": () => withFolder("bare", "coroom", () => startBare("naive")),
};

/** On a machine with one core, or without taskset, the system is not bound to a core. */
export async function startWhole(name: WholeSystemName): Promise<WholeSystem> {
  const system = await START[name]();
  for (const { pid } of system.processes) bindToCore(pid, 0);
  return system;
}

/** Binds all threads of the process. Returns whether that succeeded. */
export function bindToCore(pid: number, core: number): boolean {
  if (process.platform !== "linux" || availableParallelism() < 2) return false;
  return spawnSync("taskset", ["-a", "-c", "-p", String(core), String(pid)]).status === 0;
}

/** `more`: further environment variables. `flags`: further flags of Node. */
export async function startCoroom(more: Readonly<Record<string, string>> = {}, flags: readonly string[] = []): Promise<WholeSystem> {
  const limits = Object.fromEntries(LIFTED_LIMITS.map(([name, value]) => [`COROOM_${name}`, value]));
  return startProgram("coroom", "coroom", [...NODE_FLAGS, ...flags, resolve("dist/cli/main.js"), "start"], (port, folder) => ({
    ...limits,
    COROOM_PORT: String(port),
    COROOM_DATA_DIR: folder,
    COROOM_JWT_SECRET: JWT_SECRET,
    COROOM_LOG_LEVEL: "warn",
    ...more,
  }));
}

async function startYWebsocket(): Promise<WholeSystem> {
  const program = resolve("node_modules/@y/websocket-server/src/server.js");
  return startProgram("y-websocket", "y-websocket", [program], (port) => ({ HOST: "127.0.0.1", PORT: String(port) }));
}

async function startProgram(
  name: string,
  dialect: DialectName,
  args: readonly string[],
  settingsOf: (port: number, folder: string) => Readonly<Record<string, string>>,
): Promise<WholeSystem> {
  return withFolder(name, dialect, async (folder) => {
    const port = await claimPort(0, "127.0.0.1", "port");
    const logFile = join(folder, "server.log");
    const child = await spawnChild({ path: process.execPath, args, env: settingsOf(port, folder), cwd: resolve("."), logFile });
    await eventually(`${name} is ready`, () => /coroom ready|running at/.test(readFileSync(logFile, "utf8")), READY_MS_MAX);
    return {
      name,
      logFile,
      gateways: [`ws://127.0.0.1:${port}`],
      processes: [{ role: "node", pid: child.pid }, ...descendantsOf(child.pid)],
      token: (user) => makeToken({ room: ["*"], user, name: user, rights: ["read", "write"], tenant: "default", ttl: 36_000 }, JWT_SECRET),
      stop: () => child.stop(PEER_STOP_PATIENCE_MS),
    };
  });
}

async function withFolder(
  name: string,
  dialect: DialectName,
  start: (folder: string) => Promise<Omit<WholeSystem, "dialect">>,
): Promise<WholeSystem> {
  const folder = mkdtempSync(join(tmpdir(), `bench-${name}-`));
  const system = await start(folder);
  const stop = async (): Promise<void> => {
    await system.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...system, name, dialect, stop };
}

/** Child processes, and theirs: nats-server and redis-server, with the shells that watch them. */
function descendantsOf(pid: number): ServerProcess[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").trim().split(" ").filter(Boolean).map(Number),
  );
  return children.flatMap((child) => [{ role: readFileSync(`/proc/${child}/comm`, "latin1").trim(), pid: child }, ...descendantsOf(child)]);
}
