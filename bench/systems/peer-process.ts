/** A process of one of the peers in `bench/relay`, told what it needs by RELAY_… variables. */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { type Child, spawnChild } from "../../engines/child.ts";
import { eventually } from "../../test/system/eventually.ts";

export const PEER_STOP_PATIENCE_MS = 5_000;

/** `folder` takes its log, under `name`. */
export async function startPeer(role: string, folder: string, env: Readonly<Record<string, string>>, name = role): Promise<Child> {
  const logFile = join(folder, `${name}.log`);
  const child = await spawnChild({
    path: process.execPath,
    args: [resolve("dist/bench/relay/main.js"), role],
    env,
    cwd: resolve("."),
    logFile,
  });
  await eventually(`the peer ${name} is ready`, () => readFileSync(logFile, "utf8").includes("relay ready"));
  return child;
}
