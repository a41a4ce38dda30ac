/** Compares `nats.conf` and its environment variables with a real nats-server. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

import { BINARIES } from "../../engines/binaries.ts";
import { spawnChild } from "../../engines/child.ts";
import { findBinary } from "../../engines/find.ts";
import { claimFreePorts } from "../../engines/free-port.ts";
import { eventually } from "../../test/system/eventually.ts";

const conf = readFileSync("deploy/nats/nats.conf", "utf8");
const TWO_MINUTES_NS = 120_000_000_000;

type JetStreamConfig = { readonly sync_interval?: number; readonly sync_always?: boolean };

async function jetStreamWith(syncInterval: string): Promise<JetStreamConfig> {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-nats-conf-"));
  const [port, monitorPort] = await claimFreePorts(2, "127.0.0.1");
  const alone = conf
    .slice(0, conf.indexOf("cluster {"))
    .replace("0.0.0.0:4222", `127.0.0.1:${port}`)
    .replace("0.0.0.0:8222", `127.0.0.1:${monitorPort}`)
    .replace("/data", dataDir);
  writeFileSync(join(dataDir, "nats.conf"), alone);
  const { path, env } = await findBinary(BINARIES.natsServer);
  const server = await spawnChild({
    path,
    args: ["-c", join(dataDir, "nats.conf")],
    env: { ...env, NATS_NAME: "nats-1", NATS_ZONE: "az:1", NATS_SYNC_INTERVAL: syncInterval },
    cwd: dataDir,
    logFile: join(dataDir, "log"),
  });
  try {
    let response: Response | undefined;
    await eventually("nats-server answers", async () => {
      response = await fetch(`http://127.0.0.1:${monitorPort}/varz`).catch(() => undefined); // nats-server does not listen yet.
      return response?.ok === true;
    });
    return ((await response!.json()) as { jetstream: { config: JetStreamConfig } }).jetstream.config;
  } finally {
    await server.stop(10_000);
    rmSync(dataDir, { recursive: true });
  }
}

test("[DEP1] both documented values of the sync interval have the documented effect", async () => {
  const [, always, rarely] = /NATS_SYNC_INTERVAL \((\w+), or (\w+)\)/.exec(conf)!;
  expect(await jetStreamWith(always!)).toMatchObject({ sync_always: true });
  expect(await jetStreamWith(rarely!)).toMatchObject({ sync_interval: TWO_MINUTES_NS });
});
