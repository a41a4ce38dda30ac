/** Runs `haproxy.cfg` before gateways on this machine, for tests and benchmarks. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { BINARIES } from "../../engines/binaries.ts";
import { type ChildProcessHandle, spawnChild } from "../../engines/child.ts";
import { findBinary } from "../../engines/find.ts";
import { claimPort } from "../../engines/free-port.ts";
import { runProgram } from "../../engines/run-program.ts";
import { eventually } from "../../test/system/eventually.ts";

export type RunningBalancer = { readonly url: string; readonly process: ChildProcessHandle; readonly logFile: string };

const CHECK_MS_MAX = 20_000;

/** `gateways`: host and port of each. `folder` receives the configuration and the log. */
export async function startBalancer(gateways: readonly string[], folder: string, connectionsMax: number): Promise<RunningBalancer> {
  const port = await claimPort(0, "127.0.0.1", "port");
  const config = balancerConfig(readFileSync("deploy/balancer/haproxy.cfg", "utf8"), gateways)
    .replace("bind :8080", `bind 127.0.0.1:${port}`)
    .replace("maxconn 100000", `maxconn ${connectionsMax}`);
  const [path, logFile] = [join(folder, "haproxy.cfg"), join(folder, "haproxy.log")];
  writeFileSync(path, config);
  const haproxy = await findBinary(BINARIES.haproxy);
  await runProgram(haproxy.path, ["-c", "-f", path], { msMax: CHECK_MS_MAX, env: haproxy.env });
  const process = await spawnChild({ path: haproxy.path, args: ["-db", "-f", path], env: haproxy.env, cwd: folder, logFile });
  const url = `ws://127.0.0.1:${port}`;
  await eventually(
    "the balancer passes requests on",
    async () => (await fetch(`${url.replace("ws", "http")}/readyz`).catch(() => undefined))?.ok === true,
  );
  return { url, process, logFile };
}

/** The lines of the two gateways, replaced by one line for each given gateway, in every backend. */
function balancerConfig(config: string, gateways: readonly string[]): string {
  const lines = gateways.map((host, index) => `  server gateway-${index + 1} ${host}\n`).join("");
  return config.replaceAll(/(?: {2}server gateway-\d+ \S+\n)+/g, lines);
}
