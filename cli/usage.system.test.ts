/** `coroom usage` against a real gateway and Redis. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";

import { readSettings } from "../shared/settings/settings.ts";
import type { Engine } from "../engines/engine.ts";
import { gatewayRig, OPERATOR, ROOM, TENANT } from "../gateway/testing/gateway-rig.ts";
import { until } from "../test/contract/real-nats.ts";
import { startTestRedis } from "../test/contract/test-engines.ts";
import { usageSettings } from "./command-settings.ts";
import { printUsage } from "./usage.ts";

/** Gateways limit such requests. */
const ASK_MS = 250;

const rig = gatewayRig("usage-command", { usageFlushMs: "1000" });
let folder: string;
let redis: Engine;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-usage-command-"));
  redis = await startTestRedis({ dataDir: join(folder, "redis") });
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function usage(address: string, flags: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const printed: string[] = [];
  const config = readSettings(usageSettings, { flags: { url: `http://${address}`, operatorSecret: OPERATOR, ...flags }, env: {} });
  await printUsage(config, (line) => void printed.push(line));
  return printed;
}

test("[USGC1] the usage of a tenant is printed as a table and as CSV, and another tenant's usage is not in it", async () => {
  rig.startOwner();
  const address = await rig.start({}, redis.url);
  const ann = await rig.greet(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  for (let counter = 1; counter <= 3; counter++) ann.edit(channel, counter, "hello", counter - 1);
  await (await rig.greet(address, "bob", { tenant: "second" })).next("welcome");
  const rowsOf = async (tenant: string): Promise<readonly string[][]> => {
    await sleep(ASK_MS);
    const [text = ""] = await usage(address, { tenant, csv: "true" });
    return text.split("\r\n").map((row) => row.split(","));
  };
  await until(async () => (await rowsOf("second")).length === 2 && (await rowsOf(TENANT))[1]?.[4] === "3", "both tenants have usage");
  const [names, row] = await rowsOf(TENANT);
  expect(names!.slice(0, 5)).toEqual(["day", "tenant", "connections", "connectionSeconds", "edits"]);
  expect([row![1], row![2], row![4]]).toEqual([TENANT, "1", "3"]);

  const [title, ofTenant, end, ...others] = await usage(address, { tenant: TENANT });
  expect(title).toMatch(/^day +tenant +connections +connection s +edits +edit bytes/);
  expect(ofTenant).toMatch(new RegExp(String.raw`^\d{4}-\d\d-\d\d +${TENANT} +1 +\d+ +3 +\d+ `));
  expect([end, others]).toEqual([expect.stringMatching(/^usage from .* to .* \(UTC\)\./), []]);
});

test("[USGC2] a gateway without Redis, a wrong secret and a wrong day end the command with what to do", async () => {
  const address = await rig.start();
  await expect(usage(address, {})).rejects.toThrow(/Redis/);
  await expect(usage(address, { operatorSecret: "x".repeat(32) })).rejects.toThrow(/operator secret differs.*COROOM_OPERATOR_SECRET/);
  await expect(usage(address, { from: "yesterday" })).rejects.toThrow(/days in UTC, such as/);
});
