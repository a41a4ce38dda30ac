/** The health port. */

import { Counter, Registry } from "prom-client";
import { expect, test } from "vitest";

import { claimPort } from "../engines/free-port.ts";
import { serveHealth } from "./health.ts";

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
