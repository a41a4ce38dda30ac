import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { expect, test } from "vitest";

import { spawnChild } from "../engines/child.ts";
import { startTestNats, startTestRedis } from "../test/contract/test-engines.ts";
import { eventually } from "../test/system/eventually.ts";
import { NODE_FLAGS } from "./node-flags.ts";

const SECRET = "a secret of the tests, 32 characters";
const READY_MS_MAX = 120_000;
const STOP_PATIENCE_MS = 20_000;

test("[START1] a production system with its own engines and all roles starts without a data folder, serves its API, and stops in order", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-start-"));
  const nats = await startTestNats({ dataDir: join(folder, "nats") });
  const redis = await startTestRedis({ dataDir: join(folder, "redis") });
  const logFile = join(folder, "log");
  const dataDir = join(folder, "data");
  const settings = {
    PRODUCTION: "true",
    DATA_DIR: dataDir,
    NATS_URL: nats.url,
    REDIS_URL: redis.url,
    PORT: "0",
    JWT_SECRET: SECRET,
    ROOM_SECRET: SECRET,
    INTERNAL_SECRET: SECRET,
    ALLOWED_ORIGINS: "https://app.example",
    DRAIN_MS_MAX: "0",
  };
  const env = Object.fromEntries(Object.entries(settings).map(([name, value]) => [`COROOM_${name}`, value]));
  const child = await spawnChild({
    path: process.execPath,
    args: [...NODE_FLAGS, resolve("dist/cli/main.js"), "start"],
    env,
    cwd: folder,
    logFile,
  });
  let ended = false;
  void child.exited.then(() => (ended = true));
  const printed = (): string => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "");
  try {
    await eventually("it is ready, or has ended", () => ended || /^coroom ready /m.test(printed()), READY_MS_MAX);
    expect(ended ? printed() : "running").toBe("running");
    const described = await fetch(`${/^coroom ready (\S+)/m.exec(printed())![1]}/v1/openapi.json`);
    expect(Object.keys(((await described.json()) as { paths: object }).paths)).toContain("/v1/admin/bans"); // Also with compiled files.
    for (const signal of ["SIGINT", "SIGTERM"] as const) child.kill(signal); // Like one Ctrl-C under npm.
    expect(await child.exited).toEqual({ code: 0, signal: null });
  } finally {
    await child.stop(STOP_PATIENCE_MS);
    await Promise.all([nats.stop(), redis.stop()]);
    rmSync(folder, { recursive: true });
  }
});
