/** The health port. */

import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Counter, Gauge, Registry } from "prom-client";
import { expect, onTestFinished, test } from "vitest";

import { claimPort } from "../engines/free-port.ts";
import { serveHealth } from "./health.ts";
import { diskFreeGauge } from "./local-engines.ts";

test("[HEA1] /healthz answers from the start, and /readyz answers 200 only between ready and stopping", async () => {
  const registry = new Registry();
  new Counter({ name: "coroom_tests_total", help: "Tests", registers: [registry] }).inc();
  const healthPort = await claimPort(0, "127.0.0.1", "port");
  const health = await serveHealth({ healthHost: "127.0.0.1", healthPort }, registry);
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${healthPort}${path}`);
    return { status: answer.status, body: await answer.text() };
  };
  expect([(await ask("/healthz")).status, (await ask("/readyz")).status]).toEqual([200, 503]);
  health.ready();
  expect([
    (await ask("/readyz")).status,
    (await ask("/metrics")).body.includes("coroom_tests_total 1"),
    (await ask("/else")).status,
  ]).toEqual([200, true, 404]);
  health.stopping();
  expect([(await ask("/healthz")).status, (await ask("/readyz")).status]).toEqual([200, 503]);
  await health.stop();
});

test("[HEA2] port 0 opens no port, and the error names a port that is in use", async () => {
  const none = await serveHealth({ healthHost: "127.0.0.1", healthPort: 0 }, new Registry());
  none.ready();
  await none.stop();
  const healthPort = await claimPort(0, "127.0.0.1", "port");
  const first = await serveHealth({ healthHost: "127.0.0.1", healthPort }, new Registry());
  await expect(serveHealth({ healthHost: "127.0.0.1", healthPort }, new Registry())).rejects.toThrow(/COROOM_HEALTH_PORT/);
  await first.stop();
});

test("[HEA3] metrics that cannot be read are one failed answer, and the other answers go on", async () => {
  const registry = new Registry();
  new Gauge({ name: "coroom_tests", help: "Tests", registers: [registry], collect: () => Promise.reject(new Error("the disk is gone")) });
  const healthPort = await claimPort(0, "127.0.0.1", "port");
  const health = await serveHealth({ healthHost: "127.0.0.1", healthPort }, registry);
  onTestFinished(() => health.stop());
  const metrics = await fetch(`http://127.0.0.1:${healthPort}/metrics`, { signal: AbortSignal.timeout(5_000) });
  expect([metrics.status, await metrics.text()]).toEqual([500, "the metrics cannot be read: the disk is gone\n"]);
  expect((await fetch(`http://127.0.0.1:${healthPort}/healthz`)).status).toBe(200);
});

test("[HEA5] a connection is closed after its first request, and those that follow are not read", async () => {
  const healthPort = await claimPort(0, "127.0.0.1", "port");
  const health = await serveHealth({ healthHost: "127.0.0.1", healthPort }, new Registry());
  onTestFinished(() => health.stop());
  const asker = connect(healthPort, "127.0.0.1").on("error", () => {}); // A write to a closed connection.
  let received = "";
  asker.on("data", (answer) => (received += answer.toString()));
  const closed = once(asker, "close");
  asker.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n".repeat(500));
  await closed;
  expect(received.split("HTTP/1.1 200").length - 1).toBe(1);
});

test("[HEA4] free bytes of a folder that is gone are missing from the metrics, and no other metric with them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-disk-"));
  const registry = new Registry();
  new Counter({ name: "coroom_tests_total", help: "Tests", registers: [registry] }).inc();
  diskFreeGauge(folder, registry);
  const valueOf = async (): Promise<number> => Number(/^coroom_engines_disk_free_bytes (.+)$/m.exec(await registry.metrics())?.[1] ?? "-1");
  expect(await valueOf()).toBeGreaterThan(0);
  rmSync(folder, { recursive: true });
  expect([await valueOf(), (await registry.metrics()).includes("coroom_tests_total 1")]).toEqual([-1, true]);
  mkdirSync(folder);
  expect(await valueOf()).toBeGreaterThan(0);
  rmSync(folder, { recursive: true });
});
